"""A database that tells only names gets its tables read again whenever rows may have changed."""

from __future__ import annotations

import pytest

from connectors.engines.definitions import ColumnDefinition, TableDefinition, silent_changes


def table(*columns: ColumnDefinition, files: str = "1") -> TableDefinition:
    return TableDefinition("shop.t", files, columns, names_identify=True)


def column(name: str, version: str = "int", *, filled: bool = False) -> ColumnDefinition:
    return ColumnDefinition(name, name, version, filled)


ID = column("id")
BEFORE = table(ID, column("a"), column("b", "text"))


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (table(*BEFORE.columns, column("c", filled=True)), "column c was added with a value"),
        (table(ID, column("b", "text"), column("x")), "column x came, perhaps another one's new name"),
        (table(ID, column("a", "bigint"), column("b", "text")), "column a has another type"),
        (table(*BEFORE.columns, files="2"), "files were made anew"),
        (table(*BEFORE.columns, column("c"), files="2"), "files were made anew"),
    ],
)
def test_rows_may_have_changed(now: TableDefinition, reason: str) -> None:
    changes = silent_changes(BEFORE, now)
    assert changes is not None
    assert changes.condition is None
    assert any(reason in one for one in changes.reasons), changes


@pytest.mark.parametrize(
    "now",
    [
        BEFORE,
        table(*BEFORE.columns, column("c")),
        table(ID, column("a")),
        table(ID, column("b", "text"), column("x", "date")),
        table(*reversed(BEFORE.columns)),
    ],
    ids=["nothing", "an empty column came", "a column went", "one of another type came", "another order"],
)
def test_no_row_has_changed_if_the_files_are_the_same(now: TableDefinition) -> None:
    assert silent_changes(BEFORE, now) is None


def test_a_definition_survives_its_way_through_a_file() -> None:
    assert TableDefinition.from_json(BEFORE.to_json()) == BEFORE
