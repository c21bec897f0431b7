"""A run that follows takes up what is added to its lake file, and outlasts mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_app.run.lake_file import WatchedLakeFile
from tributary.contract.errors import TributaryError

FIRST = """
[lake]
name = "shop"

[source.web]
engine = "postgres"
database = "web"
tables = ["public.orders"]
"""
SECOND = FIRST + FIRST.replace('[lake]\nname = "shop"', "").replace("source.web", "source.till")


def test_a_source_that_is_added_is_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "lake.toml"
    file.write_text(FIRST)
    watched = WatchedLakeFile(file)
    file.write_text(SECOND)
    assert [source.name for source in watched.current().sources] == ["web", "till"]


def test_a_change_that_cannot_be_used_is_reported_once_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lake.toml"
    file.write_text(FIRST)
    watched = WatchedLakeFile(file)
    before = watched.lake

    file.write_text(FIRST + "tables = 7")
    assert watched.current() is watched.current() is before
    assert capsys.readouterr().err.count("cannot be used") == 1
    file.unlink()
    assert watched.current() is watched.current() is before
    assert capsys.readouterr().err.count("cannot be used") == 1
    file.write_text(SECOND.replace("shop", "store"))
    assert watched.current() is watched.current() is before
    assert capsys.readouterr().err == "The lake file is now of the lake store, so it is not used.\n"

    file.write_text(SECOND)
    assert len(watched.current().sources) == 2
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_read_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TributaryError):
        WatchedLakeFile(tmp_path / "lake.toml")
