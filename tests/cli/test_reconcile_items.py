"""Items are compared with the lake's rows by value, whatever types the columns have got."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.spark_app.items.generated import Plain, item
from tributary.api.rows import without_key_parts
from tributary.contract.column_types import ColumnType
from tributary.contract.item_stream import ItemRules
from tributary.contract.lake import TablePolicy
from tributary.operations.reconcile.comparison import Kind
from tributary.operations.reconcile.items import compare_items

RULES = ItemRules()
ITEMS: tuple[Mapping[str, Plain], ...] = (
    {
        "pk": "a",
        "sk": Decimal(1),
        "n": Decimal("10.50"),
        "b": b"\0\xff",
        "ok": True,
        "mixed": Decimal("1.50"),
    },
    {
        "pk": "a",
        "sk": Decimal(2),
        "tags": frozenset({"y", "x"}),
        "sizes": frozenset({Decimal("1.5"), Decimal(2)}),
    },
    {
        "pk": "b",
        "sk": Decimal(1),
        "doc": {"z": [Decimal("1.0"), None], "a": b"\1"},
        "mixed": "text",
        "n": None,
    },
)
SCHEMA = pa.schema(
    [
        ("_key", pa.string()),
        ("pk", pa.string()),
        ("sk", pa.int64()),
        ("n", pa.decimal128(26, 6)),
        ("b", pa.binary()),
        ("ok", pa.bool_()),
        ("mixed", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("sizes", pa.list_(pa.decimal128(26, 6))),
        ("doc", pa.string()),
    ]
)
ROWS: tuple[Mapping[str, Any], ...] = (
    {"pk": "a", "sk": 1, "n": Decimal("10.500000"), "b": b"\0\xff", "ok": True, "mixed": "1.5"},
    {"pk": "a", "sk": 2, "tags": ["x", "y"], "sizes": [Decimal("1.500000"), Decimal("2.000000")]},
    {"pk": "b", "sk": 1, "doc": '{"a":"AQ==","z":[1,null]}', "mixed": "text"},
)


def _lake(*rows: Mapping[str, Any], schema: pa.Schema = SCHEMA) -> pa.Table:
    full = [{name: row.get(name) for name in schema.names} for row in rows]
    return pa.Table.from_pylist(full, schema)


def _found(
    lake: pa.Table, *items: Mapping[str, Plain], rules: ItemRules = RULES
) -> dict[tuple[Any, ...], tuple[Kind, list[str]]]:
    comparison, pairing = compare_items(rules, [item(one) for one in items], ("pk", "sk"), lake, ("pk", "sk"))
    assert not pairing.mismatched
    return {one.key: (one.kind, [cell.column for cell in one.cells]) for one in comparison.differences}


def test_equal_items_and_rows_are_equal_in_every_type() -> None:
    assert _found(_lake(*ROWS), *ITEMS) == {}


@pytest.mark.parametrize(
    ("row", "column", "wrong"),
    [
        (0, "n", Decimal("10.500001")),
        (0, "b", b"\0"),
        (0, "ok", False),
        (0, "mixed", "1.50"),
        (1, "tags", ["x"]),
        (1, "sizes", [Decimal(2), Decimal("1.5")]),
        (2, "doc", '{"a":"AQ==","z":[1]}'),
        (2, "n", Decimal(0)),
    ],
)
def test_every_other_value_is_a_difference(row: int, column: str, wrong: Any) -> None:
    rows = [dict(each) for each in ROWS]
    rows[row][column] = wrong
    key = (ROWS[row]["pk"], ROWS[row]["sk"])
    assert _found(_lake(*rows), *ITEMS) == {key: (Kind.CHANGED, [column])}


def test_a_part_of_the_key_that_partitions_the_lake_is_no_difference() -> None:
    partitioned = _lake(*ROWS).add_column(0, "pk__hash_8", [[1] * len(ROWS)])
    with_parts = TablePolicy(partition_by=("hash(pk, 8)",))
    assert _found(without_key_parts(partitioned, with_parts), *ITEMS) == {}
    assert without_key_parts(partitioned, TablePolicy()).equals(partitioned)


def test_missing_and_extra_rows_are_differences() -> None:
    assert _found(_lake(*ROWS[:2]), *ITEMS[1:]) == {
        ("a", 1): (Kind.EXTRA, []),
        ("b", 1): (Kind.MISSING, []),
    }


def test_an_attribute_that_the_lake_lacks_is_a_difference_where_it_has_a_value() -> None:
    schema = SCHEMA.remove(SCHEMA.get_field_index("ok"))
    assert _found(_lake(*ROWS, schema=schema), *ITEMS) == {("a", 1): (Kind.CHANGED, ["ok"])}


def test_a_type_that_has_become_too_narrow_is_told() -> None:
    later = {**ITEMS[0], "sk": Decimal("0.5"), "n": "not a number"}
    _, pairing = compare_items(RULES, [item(later)], ("pk", "sk"), _lake(*ROWS), ("pk", "sk"))
    assert pairing.mismatched.keys() == {"n"}


def test_without_a_table_in_the_lake_every_item_is_missing() -> None:
    comparison, _ = compare_items(RULES, [item(one) for one in ITEMS], ("pk", "sk"), pa.table({}), ())
    assert {one.kind for one in comparison.differences} == {Kind.MISSING}
    assert len(comparison.differences) == 3


def test_set_types_and_json_are_compared_as_the_lake_file_says() -> None:
    rules = ItemRules(attributes="json", types=(("n", ColumnType("double precision")),))
    one = {"pk": "a", "sk": Decimal(1), "n": Decimal("0.1"), "x": [Decimal("1.0")]}
    schema = pa.schema(
        [("pk", pa.string()), ("sk", pa.int64()), ("n", pa.float64()), ("attributes", pa.string())]
    )
    row = {"pk": "a", "sk": 1, "n": 0.1, "attributes": '{"x":[1]}'}
    assert _found(_lake(row, schema=schema), one, rules=rules) == {}
    other = {**row, "attributes": '{"x":[2]}'}
    assert _found(_lake(other, schema=schema), one, rules=rules) == {("a", 1): (Kind.CHANGED, ["attributes"])}
