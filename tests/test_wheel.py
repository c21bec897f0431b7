"""The wheel is complete: installed outside the project, the command works from an empty folder."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tributary.artifacts.cache import sha256_of
from tributary.local.pipeline import down
from tributary.local.state import StateFolder

PROJECT = Path(__file__).parents[1]
PACKAGES = ("connectors", "spark_app", "stacks", "tributary")
BUILT_FROM = ("LICENSE", "README.md", "pyproject.toml", "requirements.in")
ONLY_IN_THE_PROJECT = {".in"}
"""Suffixes of files that only `make lock` reads."""
WITH_OTHER_PACKAGES = (
    "stacks/functions/",
    "tributary/dbt.py",
    "tributary/local/items/dynamodb_server.py",
    "tributary/superset/inside.py",
)
"""Code that runs on AWS, in dbt, in Superset, or as a server of its own, with requirements of its own."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, because setuptools leaves its build folder beside the sources."""
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in BUILT_FROM:
        shutil.copyfile(PROJECT / name, copy / name)
    for name in (*PACKAGES, "bench", "tests"):
        shutil.copytree(PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(out)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True)
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of executables in an environment that has the wheel and its dependencies.

    A path file makes this environment's dependencies visible, but not this project's own modules, because
    path files in a folder that another path file names have no effect.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    (site_packages,) = home.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    executables = home / "bin"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([executables / "python", *install], check=True, cwd=home)
    return executables


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def _run_the_page_about_python(executables: Path) -> None:
    """Run the code of docs/python.md on the demo's lake."""
    code = re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "python.md").read_text(), re.DOTALL)
    assert len(code) > 4
    done = subprocess.run([executables / "python", "-c", "\n".join(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "shop.public.listing merge_on_read" in done.stdout


def _run(executables: Path, *arguments: str) -> str:
    """Return the output of the installed command, which must succeed."""
    done = subprocess.run([executables / "tributary", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_holds_every_file_of_the_packages_and_no_tests_or_benchmarks(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for package in PACKAGES for path in (PROJECT / package).rglob("*") if path.is_file())
    expected = {
        path.relative_to(PROJECT).as_posix()
        for path in files
        if "__pycache__" not in path.parts and path.suffix not in ONLY_IN_THE_PROJECT
    }
    assert found == expected
    assert {PurePosixPath(name).parts[0] for name in found} == set(PACKAGES)


def test_the_wheel_requires_every_distribution_that_its_modules_import(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        modules = [archive.read(name).decode() for name in names if not name.startswith(WITH_OTHER_PACKAGES)]
    (distribution,) = metadata.distributions(path=[str(wheel)])
    provided = set(_with_all_they_need(distribution.requires or []))
    owners = metadata.packages_distributions()
    imported = set().union(*map(_imported, modules)) - sys.stdlib_module_names - set(PACKAGES)
    missing = {name for name in imported if not {_plain(owner) for owner in owners[name]} & provided}
    assert {"pyspark", "boto3", "pandas"} <= imported
    assert missing == set()


def _imported(source: str) -> set[str]:
    """Return the top-level names that a module imports when it runs."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found.update(alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module.partition(".")[0])
    return found


def _with_all_they_need(requirements: Iterable[str]) -> Iterator[str]:
    """Yield the names of the distributions that the requirements bring on this machine."""
    seen: set[str] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        name = _plain(requirement.name)
        if name not in seen:
            seen.add(name)
            yield name
            wanted = map(Requirement, metadata.requires(name) or ())
            left += [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("command", [[], ["demo"], ["up"], ["plugins", "build"]])
def test_every_command_of_the_wheel_has_help(installed: Path, empty_folder: Path, command: list[str]) -> None:
    assert " ".join(["tributary", *command]) in _run(installed, *command, "--help")
    assert list(empty_folder.iterdir()) == []


@pytest.mark.usefixtures("empty_folder")
def test_the_installed_package_is_the_one_under_test(installed: Path) -> None:
    for package in PACKAGES:
        show = f"import {package}; print({package}.__file__)"
        found = subprocess.run(
            [installed / "python", "-I", "-c", show], capture_output=True, text=True, check=True
        )
        assert Path(found.stdout).is_relative_to(installed.parent)


def test_the_wheel_builds_the_same_files_for_aws_as_the_project(
    installed: Path, empty_folder: Path, tmp_path: Path
) -> None:
    """The installed sources equal the project's, so the digests in the files' names are equal too."""
    here = Path(sys.executable).parent
    for command in (["plugins", "build"], ["package"]):
        _run(installed, *command)
        _run(here, *command, "--out", str(tmp_path / "of-the-project"))
    built = {path.name: sha256_of(path) for path in (empty_folder / "dist").rglob("*") if path.is_file()}
    of_the_project = (tmp_path / "of-the-project").rglob("*")
    assert built == {path.name: sha256_of(path) for path in of_the_project if path.is_file()}
    assert any(name.startswith("tributary-spark-app-") for name in built)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_demo_writes_a_lake_file_that_the_other_commands_use(installed: Path, empty_folder: Path) -> None:
    state = ["--state", ".tributary-demo"]
    try:
        size = ["--scale", "0.001", "--transactions", "10", "--rate", "100"]
        told = _run(installed, "demo", *size, "--keep-running")
        assert "Wrote lake.toml" in told
        assert "identical" in told
        assert (empty_folder / "lake.toml").read_bytes() == (PROJECT / "lake.toml").read_bytes()
        assert "was up already" in _run(installed, "up", *state)
        assert "shop.public.sales" in _run(installed, "tables", *state)
        _run_the_page_about_python(installed)
        assert "Stopped" in _run(installed, "down", *state)
    finally:
        down(StateFolder(empty_folder / ".tributary-demo"))
