"""`lineage` shows what reads what, and `derive` refuses names that no derived table has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contract.test_derived import HEAD, derived
from tributary.cli import main

TABLES = derived("rich", "SELECT id FROM totals") + derived(
    "totals", "SELECT id FROM orders JOIN purchases USING (id)"
)


@pytest.fixture(autouse=True)
def in_folder_with_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake.toml").write_text(HEAD + TABLES)
    monkeypatch.chdir(tmp_path)


def test_each_table_is_listed_after_what_it_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["lineage"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1:] == [["totals", "orders"], ["totals", "topic", "purchases"], ["rich", "totals"]]


def test_a_query_that_cannot_be_used_is_listed_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.toml").write_text(HEAD + TABLES + derived("bad", "SELECT now() AS id FROM orders"))
    assert main.run(["lineage", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["table"], one["kind"]) for one in found["derived"]] == [
        ("totals", "stream"),
        ("rich", "tables"),
    ]
    assert "now()" in found["errors"]["bad"]


def test_an_unknown_name_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["derive", "total"]) == 1
    assert "expected one of rich, totals" in " ".join(capsys.readouterr().err.split())


def test_a_lake_without_derived_tables_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lake.toml").write_text(HEAD)
    assert main.run(["derive"]) == 1
    assert "the lake has no derived tables" in " ".join(capsys.readouterr().err.split())
