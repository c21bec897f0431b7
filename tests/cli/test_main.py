"""Every command explains itself, and the shell and the person learn how each command ended."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from tributary.cli import main
from tributary.operations.workspace import Workspace

COMMANDS = (
    "demo",
    "demo-engines",
    "demo-dynamodb",
    "demo-sql",
    "init",
    "start",
    "up",
    "down",
    "alerts",
    "pause",
    "resume",
    "snapshot",
    "orphans list",
    "orphans keep",
    "orphans remove",
    "status",
    "ingest",
    "derive",
    "lineage",
    "rebuild",
    "new-epoch",
    "maintain",
    "erase",
    "query",
    "export",
    "tables",
    "history",
    "events",
    "boards check",
    "console",
    "sql-server",
    "superset",
    "reconcile",
    "verify",
    "quarantine list",
    "quarantine show",
    "quarantine replay",
    "plugins build",
    "package",
    "link-check",
    "submit",
)
LAKE = """
[lake]
name = "nowhere"
[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
"""


@pytest.fixture
def in_folder_with_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lake.toml").write_text(LAKE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _leaf_commands(group: object, path: str = "") -> Iterator[tuple[str, object]]:
    commands = getattr(group, "commands", None)
    if commands is None:
        yield path, group
        return
    for name, command in commands.items():
        yield from _leaf_commands(command, f"{path} {name}".strip())


def test_every_command_and_every_option_has_a_help_text() -> None:
    found = dict(_leaf_commands(typer.main.get_command(main.app)))
    assert sorted(found) == sorted(COMMANDS)
    for path, command in found.items():
        assert len(getattr(command, "help", "") or "") > 40, path
        for parameter in command.params:  # type: ignore[attr-defined]
            assert parameter.help, f"{path}: {parameter.name}"


@pytest.mark.parametrize("command", ["", "boards", "orphans", "quarantine", "plugins", *COMMANDS])
def test_help_is_at_every_level(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*command.split(), "--help"]) == 0
    assert f"tributary {command}".strip() in capsys.readouterr().out


def test_the_version_is_the_distribution_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"tributary {version('tributary')}\n"


@pytest.mark.parametrize(
    "arguments", [["no-such-command"], ["query"], ["history", "t", "--limit", "0"], ["ingest", "--from", "x"]]
)
def test_wrong_usage_ends_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(arguments) == 2
    assert "Error" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "option"), [(["--scale", "1"], "--scale"), (["--demo", "--listen", "::"], "--certificate")]
)
def test_a_start_with_options_that_do_not_fit_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    option: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.run(["start", *arguments]) == 2
    assert f"Invalid value for {option}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "SELECT 1"],
        ["tables"],
        ["history", "orders"],
        ["reconcile"],
        ["verify"],
        ["orphans", "list"],
        ["orphans", "keep", "orders"],
        ["orphans", "remove", "orders"],
        ["ingest"],
        ["quarantine", "list"],
        ["quarantine", "show", "orders", "0:1"],
        ["quarantine", "replay"],
    ],
)
def test_commands_that_need_the_pipeline_say_that_it_was_never_started(
    in_folder_with_lake: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 1
    told = capsys.readouterr().err
    assert "never started here" in told
    assert "tributary up" in told
    assert len(told.splitlines()) == 1
    assert [path.name for path in in_folder_with_lake.iterdir()] == ["lake.toml"]


@pytest.mark.usefixtures("in_folder_with_lake")
def test_a_pipeline_that_was_never_started_fails_the_status_and_can_be_stopped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["status"]) == 1
    assert "stopped" in capsys.readouterr().out
    assert main.run(["down"]) == 0
    assert "Nothing was running" in capsys.readouterr().out


def test_a_mistake_in_the_lake_file_names_the_entry(
    in_folder_with_lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (in_folder_with_lake / "lake.toml").write_text(LAKE.replace("tables =", "table ="))
    assert main.run(["tables"]) == 1
    told = capsys.readouterr().err
    assert "[source.shop].table" in told
    assert len(told.splitlines()) == 1


def test_the_demo_refuses_another_folder_and_another_lake(
    in_folder_with_lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = in_folder_with_lake / "precious"
    folder.mkdir()
    (folder / "settings.json").write_text("{}")
    assert main.run(["demo", "--state", str(folder)]) == 1
    assert "needs an empty state folder" in capsys.readouterr().err
    assert (folder / "settings.json").exists()

    (in_folder_with_lake / "lake.toml").write_text(LAKE.replace("public.*", "sales.*"))
    assert main.run(["demo", "--state", str(in_folder_with_lake / "new")]) == 1
    assert "this lake file does not describe it" in capsys.readouterr().err


@pytest.mark.usefixtures("in_folder_with_lake")
def test_an_unexpected_error_is_one_line_and_its_traceback_is_in_a_private_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Workspace, "open", fail)
    assert main.run(["tables"]) == 1
    told = capsys.readouterr().err.strip()
    assert "RuntimeError: out of luck" in told
    assert len(told.splitlines()) == 1
    report = Path(told.rpartition(" ")[2].rstrip("."))
    assert "Traceback" in report.read_text()
    assert report.stat().st_mode & 0o077 == 0
    report.unlink()


@pytest.mark.usefixtures("in_folder_with_lake")
def test_ctrl_c_ends_with_status_130_and_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Workspace, "open", interrupt)
    assert main.run(["tables"]) == 130
    assert capsys.readouterr().err.strip() == "Stopped."
