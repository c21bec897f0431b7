"""CONTRIBUTING.md, the hooks and the CI workflow name files, targets and tools that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
HOOKS = ROOT / ".pre-commit-config.yaml"

_PATH = re.compile(r"`((?:[\w.<>-]+/)+[\w.<>-]*|[\w-]+\.(?:md|toml|txt|in|yaml))`")
_PART_OF_A_NAME = re.compile(r"[^/]*<\w+>.*")


def test_every_path_that_the_guide_names_exists() -> None:
    named = set(_PATH.findall(GUIDE))
    # For `connectors/engines/<engine>/`, which is still to be made, check its parent folder.
    there = {name: ROOT / _PART_OF_A_NAME.sub("", name) for name in named}
    assert len(named) > 30
    assert {name for name, path in there.items() if not path.exists()} == set()


@pytest.mark.parametrize("page", [GUIDE, ARCHITECTURE], ids=["CONTRIBUTING.md", "architecture.md"])
def test_every_room_is_in_the_guides(page: str) -> None:
    rooms = {path.parent.relative_to(ROOT) for path in ROOT.glob("*/__init__.py")} - {Path("tests")}
    rooms |= {path.parent.relative_to(ROOT) for path in ROOT.glob("tributary/*/__init__.py")}
    named = set(re.findall(r"(?:^|`)((?:\w+/)+)", page, re.MULTILINE))
    assert {str(room) for room in rooms - {Path("tributary")} if f"{room}/" not in named} == set()


@pytest.mark.parametrize("file", [ROOT / "CONTRIBUTING.md", WORKFLOW], ids=lambda file: file.name)
def test_every_make_target_exists(file: Path) -> None:
    named = re.findall(r"(?:^|`|run: )make ((?:[a-z-]+ ?)+)", file.read_text(), re.MULTILINE)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named
    assert {target for each in named for target in each.split()} <= targets


def test_the_hooks_run_the_checks_of_make_lint() -> None:
    hooks = [
        hook["entry"]
        for repository in yaml.safe_load(HOOKS.read_text())["repos"]
        for hook in repository["hooks"]
    ]
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert lint is not None
    run = re.findall(r"\$\(BIN\)/([\w-]+(?: check| format)?)", lint[1])
    assert [re.match(r"\.venv/bin/([\w-]+(?: check| format)?)", entry)[1] for entry in hooks] == run  # type: ignore[index]


def test_the_workflow_runs_on_the_python_of_the_project() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert jobs.keys() == {"lint", "test", "long", "examples", "synth", "diff"}
    assert {
        job for job, of in jobs.items() if {"uses": "./.github/actions/setup"} not in of["steps"]
    } == set()
    steps = yaml.safe_load((ROOT / ".github/actions/setup/action.yml").read_text())["runs"]["steps"]
    assert [step["with"]["python-version"] for step in steps if "setup-python" in step["uses"]] == ["3.11"]
