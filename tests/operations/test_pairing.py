"""A table that cannot be compared by its key says which column of the key it is, and why."""

from __future__ import annotations

import pyarrow as pa
import pytest

from connectors.engines.engine import DatabaseColumn, DatabaseTable
from connectors.engines.forms import INTEGER, TEXT
from tributary.operations.reconcile.pairing import pair

TABLE = DatabaseTable(
    "public",
    "things",
    (
        DatabaseColumn("id", "bigint", INTEGER),
        DatabaseColumn("name", "text", TEXT),
        DatabaseColumn("place", "point", None),
    ),
    ("id",),
)
LAKE = pa.schema([("id", pa.int64()), ("name", pa.int32()), ("place", pa.string()), ("old", pa.string())])


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (("id",), None),
        ((), "it has no primary key, and lake.toml sets no key for it"),
        (
            ("id", "name"),
            "its key column name cannot be compared: text in the database is int32 in the lake",
        ),
        (
            ("place",),
            "its key column place cannot be compared: values of its type have no form that is the "
            "same in the database and in the lake",
        ),
        (("old",), "its key column old is not in both the database and the lake"),
    ],
)
def test_the_problem_of_a_key_names_its_column_and_the_reason(
    key: tuple[str, ...], problem: str | None
) -> None:
    assert pair(TABLE, LAKE, key).key_problem == problem
