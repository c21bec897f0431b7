"""A table's columns follow those of its source, and no stored value is ever lost."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
)

from spark_app.columns.table_columns import (
    SchemaConflict,
    TableColumns,
    UnusableColumnName,
    merge,
    merge_anew,
)

TYPES: list[DataType] = [IntegerType(), LongType(), FloatType(), DoubleType(), StringType(), DateType()]
WIDENS: set[tuple[DataType, DataType]] = {(IntegerType(), LongType()), (FloatType(), DoubleType())}
DECIMALS = st.integers(1, 38).flatmap(
    lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, precision))
)
VERSIONS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(TYPES)).map(
    lambda row: TableColumns((("id", LongType()), *row.items()), ("id",))
)


def fits(current: DataType, new: DataType) -> bool:
    is_text = current == StringType()
    return is_text or current == new or (current, new) in WIDENS or (new, current) in WIDENS


@given(VERSIONS, VERSIONS)
def test_columns_are_kept_and_added_and_widened_or_the_change_is_refused(
    table: TableColumns, version: TableColumns
) -> None:
    before, asked = dict(table.row), dict(version.row)
    if not all(fits(before[name], asked[name]) for name in before.keys() & asked.keys()):
        with pytest.raises(SchemaConflict):
            merge(table, [version])
        return
    merged = merge(table, [version])

    assert merged is not None
    assert merged.names[: len(table.names)] == table.names
    assert set(merged.names) == before.keys() | asked.keys()
    assert all(fits(before.get(name, kept), kept) for name, kept in merged.row)
    assert merge(merged, [version, table]) == merged


@given(VERSIONS, VERSIONS)
def test_the_order_in_which_versions_come_changes_no_type(one: TableColumns, other: TableColumns) -> None:
    both = dict(one.row), dict(other.row)
    shared = both[0].keys() & both[1].keys()
    assume(all(fits(*types) for name in shared for types in permutations([both[0][name], both[1][name]])))
    forth, back = merge(None, [one, other]), merge(None, [other, one])

    assert forth is not None
    assert back is not None
    assert dict(forth.row) == dict(back.row)


@given(DECIMALS, DECIMALS)
def test_a_decimal_widens_to_one_that_holds_every_digit_of_both_or_is_refused(
    one: DecimalType, other: DecimalType
) -> None:
    table, version = (TableColumns((("id", LongType()), ("a", found)), ("id",)) for found in (one, other))
    whole = max(one.precision - one.scale, other.precision - other.scale)
    scale = max(one.scale, other.scale)
    if whole + scale > 38:
        with pytest.raises(SchemaConflict, match="column a"):
            merge(table, [version])
        return
    merged = merge(table, [version])

    assert merged is not None
    assert dict(merged.row)["a"] == DecimalType(whole + scale, scale)


@given(VERSIONS, VERSIONS)
def test_a_rebuilt_table_holds_both_types_of_a_column_and_then_takes_either(
    one: TableColumns, other: TableColumns
) -> None:
    anew = merge_anew([one, other])

    assert anew is not None
    assert set(anew.names) == {*one.names, *other.names}
    for version in (one, other):
        assert all(fits(dict(anew.row)[name], data_type) for name, data_type in version.row)
        assert merge(anew, [version]) == anew


@given(DECIMALS, DECIMALS)
def test_a_decimal_of_a_rebuilt_table_holds_every_digit_of_both(one: DecimalType, other: DecimalType) -> None:
    row = [TableColumns((("id", LongType()), ("a", decimal)), ("id",)) for decimal in (one, other)]
    anew = merge_anew(row)

    assert anew is not None
    found = dict(anew.row)["a"]
    whole = max(one.precision - one.scale, other.precision - other.scale)
    scale = max(one.scale, other.scale)
    assert found == (DecimalType(whole + scale, scale) if whole + scale <= 38 else StringType())


def test_no_table_holds_a_column_as_number_and_as_bytes_nor_a_key_as_text_and_as_number() -> None:
    numbers = TableColumns((("id", LongType()), ("a", IntegerType())), ("id",))
    binary = TableColumns((("id", LongType()), ("a", BinaryType())), ("id",))
    text_key = TableColumns((("id", StringType()),), ("id",))

    for other in (binary, text_key):
        with pytest.raises(SchemaConflict, match="Change the column back"):
            merge_anew([numbers, other])
    with pytest.raises(SchemaConflict, match="Change the column back"):
        merge_anew([text_key, numbers])


@pytest.mark.parametrize("known", [StringType(), IntegerType(), DateType(), DecimalType(5, 2)])
def test_values_of_a_type_that_was_dropped_take_the_type_of_their_column(known: DataType) -> None:
    typed = TableColumns((("id", LongType()), ("a", known)), ("id",))
    dropped = TableColumns((("id", LongType()), ("a", BinaryType())), ("id",), untyped=frozenset("a"))
    binary = TableColumns(dropped.row, ("id",))

    assert merge(typed, [dropped]) == typed
    for versions in permutations([typed, dropped]):
        assert merge(None, versions) == merge_anew(versions) == typed
    # Without another type they stay bytes, and such a table is no more one of unknown types.
    alone = merge(None, [dropped])
    assert alone == binary
    for table in (alone, binary):
        with pytest.raises(SchemaConflict, match="column a"):
            merge(table, [typed])
    with pytest.raises(SchemaConflict, match="column a"):
        merge(typed, [binary])


def test_another_primary_key_is_refused_with_both_keys_named() -> None:
    table = TableColumns((("id", LongType()),), ("id",))
    version = TableColumns((("code", StringType()),), ("code",))

    with pytest.raises(SchemaConflict, match=r"key \(code\), expected key \(id\)"):
        merge(table, [version])


def test_a_truncate_whose_record_has_no_key_changes_no_key_and_makes_no_table() -> None:
    keyless = TableColumns((("id", LongType()), ("a", StringType())), ())
    table = TableColumns((("id", LongType()),), ("id",))

    assert merge(None, [keyless]) is None
    merged = merge(table, [keyless])
    assert merged is not None
    assert (merged.key, merged.names) == (("id",), ("id", "a"))


UNUSABLE = (
    "First Name",
    "order-id",
    "a.b",
    "1st",
    "it's",
    'quo"te',
    "",
    "$x",
    "a/b",
    "../up",
    "_op",
    "größe",
    "数量",
    "_hoodie_x",
)


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_name_that_no_lake_table_can_have_is_refused_by_name(name: str) -> None:
    columns = TableColumns((("id", LongType()), (name, StringType())), ("id",))
    with pytest.raises(UnusableColumnName, match=re.escape(repr(name))):
        merge(None, [columns])


@pytest.mark.parametrize("name", ["select", "_x1", "op", "row", "_", "x" * 63])
def test_any_other_name_is_taken_as_it_is(name: str) -> None:
    columns = TableColumns((("id", LongType()), (name, StringType())), ("id",))
    assert merge(None, [columns]) == columns
