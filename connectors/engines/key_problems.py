"""Problems of a table's key that all engines have in common."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from connectors.engines.engine import DatabaseNotReady
from tributary.contract.table_name import TableName

NotReadyT = TypeVar("NotReadyT", bound=DatabaseNotReady)

ABSENT = "a column that does not exist"


def without_key(name: TableName, leave_out: str, error: type[NotReadyT]) -> NotReadyT:
    return error(
        "nothing identifies its rows",
        where=f"table {name}",
        found="no primary key",
        expected="a primary key, or the columns of a unique index as key in the lake file",
        remedy=f'Add [table."{name}"] with key = [...], or {leave_out}.',
    )


def no_such_column(
    entry: str,
    column: str,
    columns: Collection[str],
    error: type[NotReadyT],
    what: str = ABSENT,
) -> NotReadyT:
    return error(what, where=entry, found=column, expected=f"one of {', '.join(columns)}")


def unfit_key(
    entry: str,
    key: Collection[str],
    error: type[NotReadyT],
    *,
    expected: str | None,
    nullable: Sequence[str],
) -> NotReadyT | None:
    """Return why the lake file's or the table's own key is unfit, if it is. Its columns exist.

    expected  the columns that would identify a row; None: these do
    nullable  those of its columns that may be null
    """
    if expected is not None:
        shown = ", ".join(sorted(key))
        return error("the key does not identify a row", where=entry, found=shown, expected=expected)
    if nullable:
        expected = "columns that are NOT NULL"
        return error("a key column may be null", where=entry, found=nullable[0], expected=expected)
    return None


def lossy_key(
    name: TableName,
    leave_out: str,
    found: str,
    error: type[NotReadyT],
    expected: str = "a key that Debezium sends exactly",
) -> NotReadyT:
    """Return the problem of a key in which two values would become one."""
    return error(
        "the lake would keep one row for two",
        where=f"table {name}",
        found=found,
        expected=expected,
        remedy=f'Add [table."{name}"] with the columns of another unique index as key, or {leave_out}.',
    )
