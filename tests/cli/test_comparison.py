"""The comparison behind reconcile finds every single difference, and none between equal tables."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tributary.operations.reconcile.comparison import Cell, Comparison, Difference, Kind, compare

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("region", pa.string()),
        ("flag", pa.bool_()),
        ("count", pa.int64()),
        ("ratio", pa.float64()),
        ('odd "name"', pa.string()),
        ("blob", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("moments", pa.list_(pa.int64())),
    ]
)
KEY = ("id", "region")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.none() | st.booleans(),
    "count": st.none() | INT64,
    "ratio": st.none() | st.floats(),
    'odd "name"': st.none() | TEXT,
    "blob": st.none() | st.binary(max_size=4),
    "tags": st.none() | st.lists(st.none() | TEXT, max_size=3),
    "moments": st.none() | st.lists(st.none() | INT64, max_size=3),
}
Row = dict[str, Any]
ROW = st.fixed_dictionaries({"id": st.integers(-3, 3), "region": TEXT, **VALUES})


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


ROWS = st.lists(ROW, min_size=1, max_size=8, unique_by=_key)


def _compared(database: list[Row], lake: list[Row]) -> Comparison:
    def batches(rows: list[Row]) -> list[pa.RecordBatch]:
        half = len(rows) // 2
        return [pa.RecordBatch.from_pylist(part, SCHEMA) for part in (rows[:half], rows[half:]) if part]

    return compare(batches(database), batches(lake), SCHEMA, KEY)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


@given(ROWS, st.randoms())
@settings(deadline=None, max_examples=20)
def test_the_same_rows_in_any_order_are_identical(rows: list[Row], order: Any) -> None:
    shuffled = order.sample(rows, len(rows))
    assert _compared(rows, shuffled) == Comparison(len(rows), ())


@given(ROWS, st.data())
@settings(deadline=None, max_examples=60)
def test_a_single_changed_cell_is_found_and_named(rows: list[Row], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.sampled_from(sorted(VALUES)))
    value = data.draw(VALUES[column])
    assume(not _same(rows[place][column], value))
    lake = [dict(row) for row in rows]
    lake[place][column] = value

    found = _compared(rows, lake)

    assert len(found.differences) == 1
    difference = found.differences[0]
    assert (difference.key, difference.kind) == (_key(rows[place]), Kind.CHANGED)
    assert [cell.column for cell in difference.cells] == [column]
    assert _same(difference.cells[0].database, rows[place][column])
    assert _same(difference.cells[0].lake, value)


@given(ROWS, st.data())
@settings(deadline=None, max_examples=20)
def test_a_missing_row_is_found(rows: list[Row], data: st.DataObject) -> None:
    lost = data.draw(st.sampled_from(rows))
    found = _compared(rows, [row for row in rows if row is not lost])
    assert found.differences == (Difference(_key(lost), Kind.MISSING),)


@given(ROWS, st.data())
@settings(deadline=None, max_examples=20)
def test_an_extra_row_is_found(rows: list[Row], data: st.DataObject) -> None:
    extra = data.draw(st.sampled_from(rows))
    found = _compared([row for row in rows if row is not extra], rows)
    assert found.differences == (Difference(_key(extra), Kind.EXTRA),)


@given(ROWS, st.data())
@settings(deadline=None, max_examples=20)
def test_a_row_that_the_lake_holds_twice_is_found(rows: list[Row], data: st.DataObject) -> None:
    repeated = data.draw(st.sampled_from(rows))
    found = _compared(rows, [*rows, repeated])
    assert found.differences == (Difference(_key(repeated), Kind.REPEATED),)


def test_two_empty_tables_are_identical() -> None:
    assert _compared([], []) == Comparison(0, ())


def test_every_cell_that_differs_is_listed_in_the_order_of_the_columns() -> None:
    row: Row = dict.fromkeys(VALUES) | {"id": 1, "region": "eu"}
    other = row | {"ratio": math.inf, "count": 0}
    assert _compared([row], [other]).differences == (
        Difference((1, "eu"), Kind.CHANGED, (Cell("count", None, 0), Cell("ratio", None, math.inf))),
    )
