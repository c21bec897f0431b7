"""The check of the project's own Java fails only for something that a person has to change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tributary.artifacts.java_compiler import NotCompiled
from tributary.artifacts.java_formatter import NoFormatter, NotFormatted
from tributary.local import java_checks


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The list of compiled files. Nothing is really compiled."""
    compiled: list[str] = []
    for name in ("classes_jar", "build_plugins"):
        monkeypatch.setattr(java_checks, name, lambda name=name: compiled.append(name))
    return compiled


def test_all_java_of_the_project_is_checked() -> None:
    names = {source.name for source in java_checks.java_sources()}
    assert names >= {"RowUpsert.java", "SecretsManagerConfigProvider.java"}


def test_java_that_is_not_formatted_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(java_checks, "check_format", _raise(NotFormatted("untidy")))
    assert java_checks.main([]) == 1
    assert "untidy" in capsys.readouterr().err


def test_java_that_the_compiler_warns_of_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(java_checks, "check_format", lambda _: None)
    monkeypatch.setattr(java_checks, "classes_jar", _raise(NotCompiled("unused")))
    assert java_checks.main([]) == 1
    assert "unused" in capsys.readouterr().err


def test_without_a_formatter_the_compiler_checks_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], compiled: list[str]
) -> None:
    monkeypatch.setattr(java_checks, "check_format", _raise(NoFormatter("no formatter")))
    assert java_checks.main([]) == 0
    assert "was not checked" in capsys.readouterr().err
    assert compiled == ["classes_jar", "build_plugins"]


def test_files_are_formatted_before_they_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(java_checks, "format_java", lambda _: done.append("format"))
    monkeypatch.setattr(java_checks, "check_format", lambda _: done.append("check"))
    assert java_checks.main(["--fix"]) == 0
    assert done == ["format", "check"]


def _raise(error: Exception) -> object:
    def raising(*_: Sequence[Path]) -> None:
        raise error

    return raising
