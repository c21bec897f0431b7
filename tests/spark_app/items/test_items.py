"""Every value of every item is in the row, exactly, in a column that holds all values of its attribute."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
)

from spark_app.columns.table_columns import TableColumns
from spark_app.wire.items.attributes import (
    attribute_type,
    plain_json,
    value_of,
    widest,
)
from spark_app.wire.items.decoder import ItemDecoder, attributes_in
from spark_app.wire.items.item_columns import (
    ALL_ATTRIBUTES,
    MOST_COLUMNS,
    OTHER_ATTRIBUTES,
    ItemColumns,
    column_of,
)
from spark_app.wire.items.numbers import number, number_text
from spark_app.wire.items.record import UnreadableRecord, read_record, table_of_record
from spark_app.wire.reasons import MISMATCH, UNKNOWN_SCHEMA
from tests.spark_app.items.generated import ITEMS, NUMBERS, VALUES, Plain, Sent, attribute
from tests.spark_app.items.reference import plain, read_back, read_json, stored
from tributary.contract.column_names import is_column_name
from tributary.contract.column_types import ColumnType
from tributary.contract.item_stream import ItemRules

AT = 1_790_000_000_123_456
RULES = ItemRules()


def learned(sent: Sequence[Sent], rules: ItemRules = RULES) -> TableColumns:
    found = ItemColumns(rules).columns(None, attributes_in(each.data for each in sent))
    assert found is not None
    return found


def row_of(sent: Sent, columns: TableColumns, rules: ItemRules = RULES) -> dict[str, Any]:
    decoded = ItemDecoder(ItemColumns(rules), columns)(b"495", sent.data)
    assert decoded is not None
    assert decoded[5] is None, decoded
    assert decoded[4] is not None
    return dict(zip(columns.names, decoded[4], strict=True))


@given(st.lists(ITEMS, min_size=1, max_size=5))
def test_each_value_of_each_item_is_in_its_row(items: list[Mapping[str, Plain]]) -> None:
    sent = [Sent(str(number), AT, values) for number, values in enumerate(items)]
    columns = learned(sent)
    types = dict(columns.row)

    for each in sent:
        row = row_of(each, columns)
        assert row["id"] == each.id
        assert each.values is not None
        rest = read_json(row[OTHER_ATTRIBUTES]) if row.get(OTHER_ATTRIBUTES) else {}
        for name, value in each.values.items():
            column = column_of(name)
            if column in types:
                found = read_back(row[column], value, types[column])
                assert found == stored(value, types[column])
            elif value is not None:
                assert rest.pop(name) == plain(value)
        assert not rest


@given(st.lists(ITEMS, min_size=1, max_size=4))
def test_as_json_the_row_has_the_key_and_all_other_attributes_as_one_text(
    items: list[Mapping[str, Plain]],
) -> None:
    rules = replace(RULES, attributes="json")
    sent = [Sent(str(number), AT, values) for number, values in enumerate(items)]
    columns = learned(sent, rules)

    assert columns.names == ("id", ALL_ATTRIBUTES)
    for each in sent:
        row = row_of(each, columns, rules)
        assert read_json(row[ALL_ATTRIBUTES]) == plain(each.values)


@given(st.lists(VALUES, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_type_of_a_column_does_not_depend_on_the_order_of_its_values(
    values: list[Plain], random: Any
) -> None:
    types = [found for value in values if (found := attribute_type(attribute(value))) is not None]
    shuffled = random.sample(types, len(types))

    if types:
        assert widest(*types) == widest(*shuffled)
        half = len(types) // 2
        parts = [part for part in (types[:half], types[half:]) if part]
        assert widest(*(widest(*part) for part in parts)) == widest(*types)


@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_numbers_keep_all_their_digits(numbers: list[Decimal]) -> None:
    data_type = widest(*[found for each in numbers if (found := attribute_type(attribute(each)))])

    for each in numbers:
        value = value_of(attribute(each), data_type)
        assert Decimal(value) == each
        if isinstance(data_type, DecimalType):
            assert abs(each) < Decimal(10) ** (data_type.precision - data_type.scale)


@given(NUMBERS)
def test_one_number_has_one_text(value: Decimal) -> None:
    text = number_text(number(str(value)))
    assert number_text(number(text)) == text
    assert Decimal(text) == value


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-9223372036854775808"], LongType()),
        (["9223372036854775808"], DecimalType(20, 0)),
        (["10.5"], DecimalType(26, 6)),
        (["1", "10.5"], DecimalType(26, 6)),
        (["0.1234567"], DecimalType(32, 12)),
        (["12345678901234567890123456789012345678"], DecimalType(38, 0)),
        (["123456789012345678901234567890.12345678"], StringType()),
        (["0.12345678901234567890123456789"], DecimalType(38, 30)),
        (["1E-130"], StringType()),
    ],
)
def test_the_documented_types_of_numbers(values: list[str], expected: DataType) -> None:
    found = [attribute_type({"N": value}) for value in values]
    assert widest(*[each for each in found if each is not None]) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", Decimal(1)], StringType()),
        ([True, Decimal(1)], StringType()),
        ([True, None], BooleanType()),
        ([b"\0", b"\1"], BinaryType()),
        ([["a"], {"b": Decimal(1)}], StringType()),
        ([frozenset({Decimal(1)}), frozenset({Decimal("1.5")})], ArrayType(DecimalType(26, 6))),
        ([frozenset({Decimal(1)}), frozenset({"a"})], ArrayType(StringType())),
        ([frozenset({b"a"}), frozenset({"a"}), "a"], StringType()),
    ],
)
def test_the_documented_types_of_values_of_several_kinds(values: list[Plain], expected: DataType) -> None:
    found = [attribute_type(attribute(value)) for value in values]
    assert widest(*[each for each in found if each is not None]) == expected


def test_an_attribute_with_the_name_of_another_column_is_among_the_other_attributes() -> None:
    sent = [Sent("1", AT, {"total": Decimal(1)}), Sent("2", AT, {"Total": Decimal(2)})]
    columns = learned(sent)

    assert columns.names == ("id", "Total", OTHER_ATTRIBUTES)
    assert row_of(sent[0], columns) == {"id": "1", "Total": None, OTHER_ATTRIBUTES: '{"total":1}'}


def test_a_column_keeps_its_attribute_when_another_one_of_its_name_comes_later() -> None:
    first = learned([Sent("1", AT, {"total": Decimal(1)})])
    later = ItemColumns(RULES).columns(first, attributes_in([Sent("2", AT, {"Total": Decimal(2)}).data]))

    assert later is not None
    assert later.names == ("id", "total", OTHER_ATTRIBUTES)


def test_after_very_many_columns_new_attributes_are_among_the_other_attributes() -> None:
    sent = Sent("1", AT, {f"day_{day:04}": Decimal(day) for day in range(MOST_COLUMNS + 10)})
    columns = learned([sent])

    assert len(columns.names) == MOST_COLUMNS + 1
    row = row_of(sent, columns)
    assert len(read_json(row[OTHER_ATTRIBUTES])) == 11
    assert row["day_0007"] == 7


def test_an_attribute_that_has_only_been_null_has_no_column() -> None:
    sent = Sent("1", AT, {"state": None})
    assert learned([sent]).names == ("id",)
    assert row_of(sent, learned([sent])) == {"id": "1"}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80))
def test_every_attribute_has_a_name_that_a_column_can_have(name: str) -> None:
    assert is_column_name(column_of(name))
    assert column_of(name) not in ("_key", "_op", "_seq", "_deleted", OTHER_ATTRIBUTES, ALL_ATTRIBUTES)


TYPED = ItemRules(
    types=(
        ("price", ColumnType("numeric", (10, 2))),
        ("weight", ColumnType("double precision")),
        ("extra", ColumnType("json")),
        ("zip", ColumnType("text")),
    )
)


def test_the_lake_file_sets_types_and_columns() -> None:
    values = {"price": Decimal("1.5"), "weight": Decimal("0.1"), "extra": "a", "zip": Decimal(80331)}
    sent = Sent("1", AT, values)
    columns = learned([sent], TYPED)
    types = dict(columns.row)

    assert types["price"] == DecimalType(10, 2)
    assert types["weight"] == DoubleType()
    row = row_of(sent, columns, TYPED)
    assert (row["price"], row["weight"], row["extra"], row["zip"]) == (Decimal("1.5"), 0.1, '"a"', "80331")


@pytest.mark.parametrize("price", [Decimal("1.234"), Decimal(10**8), "a lot", True])
def test_a_value_that_does_not_fit_a_type_of_the_lake_file_is_set_aside(price: Plain) -> None:
    sent = Sent("1", AT, {"price": price})
    columns = learned([sent], TYPED)
    decoded = ItemDecoder(ItemColumns(TYPED), columns)(b"1", sent.data)

    assert decoded is not None
    assert decoded[5] == MISMATCH


@pytest.mark.parametrize(
    "later", [{"new": "a"}, {"total": "text"}, {"total": Decimal("0.5")}, {"tags": frozenset({"a"})}]
)
def test_a_value_that_the_columns_do_not_hold_yet_has_to_be_learned_first(later: Mapping[str, Plain]) -> None:
    columns = learned([Sent("1", AT, {"total": Decimal(1)})])
    decoded = ItemDecoder(ItemColumns(RULES), columns)(b"1", Sent("2", AT, later).data)

    assert decoded is not None
    assert decoded[5] == UNKNOWN_SCHEMA


def test_a_delete_by_the_time_to_live_is_told_apart() -> None:
    by_ttl, by_hand = Sent("1", AT, None, by_ttl=True), Sent("1", AT, None)
    columns = learned([Sent("1", AT, {"a": "b"})])
    kept = replace(RULES, ttl_deletes="ignore")

    assert read_record(by_ttl.data).by_ttl
    assert not read_record(by_hand.data).by_ttl
    assert ItemDecoder(ItemColumns(kept), columns)(b"1", by_ttl.data) is None
    for decoded in (
        ItemDecoder(ItemColumns(RULES), columns)(b"1", by_ttl.data),
        ItemDecoder(ItemColumns(kept), columns)(b"1", by_hand.data),
    ):
        assert decoded is not None
        assert decoded[:2] == ("d", '{"id":"1"}')


def test_the_time_has_the_precision_of_the_record() -> None:
    sent = Sent("1", AT, {})
    assert read_record(sent.data).time_us == AT
    assert read_record(replace(sent, in_milliseconds=True).data).time_us == AT // 1000 * 1000


def test_the_parts_of_a_key_come_in_any_order() -> None:
    record = json.loads(Sent("1", AT, {"a": "b"}).data)
    texts = set()
    for keys in ({"sk": {"N": "1.50"}, "pk": {"S": "a,b"}}, {"pk": {"S": "a,b"}, "sk": {"N": "1.5"}}):
        record["dynamodb"] |= {"Keys": keys, "NewImage": {**keys, "a": {"S": "b"}}}
        data = json.dumps(record).encode()
        columns = ItemColumns(RULES).columns(None, attributes_in([data]))
        assert columns is not None
        assert columns.key == ("pk", "sk")
        decoded = ItemDecoder(ItemColumns(RULES), columns)(b"1", data)
        assert decoded is not None
        texts.add(decoded[1])
    assert texts == {r'{"pk":"a\u002cb"} {"sk":1.5}'}


def _damaged(**changes: Any) -> bytes:
    record = json.loads(Sent("1", AT, {"a": "b"}).data)
    record["dynamodb"] |= changes.pop("dynamodb", {})
    return json.dumps({**record, **changes}).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff", "not_utf8"),
        (b"{", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b"[]", "not_an_item_change"),
        (_damaged(eventName="RENAME"), "not_an_item_change"),
        (_damaged(dynamodb={"ApproximateCreationDateTime": "now"}), "not_an_item_change"),
        (_damaged(dynamodb={"ApproximateCreationDateTime": 10**20}), "not_an_item_change"),
        (_damaged(dynamodb={"ApproximateCreationDateTimePrecision": "DAY"}), "not_an_item_change"),
        (_damaged(dynamodb={"Keys": {}}), "missing_key"),
        (_damaged(dynamodb={"NewImage": None}), "missing_row"),
    ],
)
def test_a_record_that_cannot_be_read_has_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableRecord) as error:
        read_record(data)
    assert error.value.reason == reason


@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans(), st.booleans())
def test_the_table_of_a_record_is_the_one_that_it_names_itself(
    value: str, is_compact: bool, by_ttl: bool
) -> None:
    values = {"tableName": value, "text": f'"tableName":"{value}"', "map": {"tableName": value}}
    record = json.loads(Sent("1", AT, values, by_ttl, table="own.Table-1_").data)
    for ascii_only in (True, False):
        data = json.dumps(
            {"eventID": '"tableName":"other"', **record},
            separators=(",", ":") if is_compact else None,
            ensure_ascii=ascii_only,
        )
        assert table_of_record(data.encode()) == "own.Table-1_"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b'{"tableName":null}',
        b'{"tableName":7}',
        b'{"dynamodb":{"tableName":"orders"}}',
        b'{"eventID":"\\"tableName\\":\\"orders\\""}',
    ],
)
def test_a_record_that_names_no_table_belongs_to_none(data: bytes) -> None:
    assert table_of_record(data) is None


def test_a_damaged_record_belongs_to_the_table_that_its_beginning_names() -> None:
    data = Sent("1", AT, {"a": "b"}).data
    for damaged in (data[:-20], data.replace(b'"b"', b'"\xff"')):
        assert table_of_record(damaged) == "orders"
        with pytest.raises(UnreadableRecord):
            read_record(damaged)


@pytest.mark.parametrize("text", ["0", "-0", "007", "-12", "1e2", "100.0", str(2**63 - 1), str(-(2**63))])
def test_whole_numbers_are_the_same_in_every_spelling(text: str) -> None:
    assert value_of({"N": text}, LongType()) == int(Decimal(text))


@pytest.mark.parametrize(
    "bad",
    [
        {"N": "one"},
        {"N": 1},
        {"N": "NaN"},
        {"B": "not base64!"},
        {"BOOL": "yes"},
        {"SS": "a"},
        {"X": "a"},
        {"S": "a", "N": "1"},
        {"S": "\ud800"},
        {"M": []},
        "a",
    ],
)
def test_an_attribute_in_another_form_is_set_aside(bad: Any) -> None:
    columns = learned([Sent("1", AT, {"a": "b"})])
    for image in ({"a": bad}, {"a": {"L": [bad]}}):
        data = _damaged(dynamodb={"NewImage": {"id": {"S": "1"}, **image}})
        decoded = ItemDecoder(ItemColumns(RULES), columns)(b"1", data)
        assert decoded is not None
        assert decoded[5] == MISMATCH


@given(VALUES)
def test_json_says_what_the_value_says(value: Plain) -> None:
    assert read_json(plain_json(attribute(value))) == plain(value)
