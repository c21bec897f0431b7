"""A key is found by its value, however a person, a record or a row writes it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_app.wire.items.attributes import text_of
from spark_app.wire.items.decoder import record_key
from spark_app.wire.items.item_columns import column_of
from spark_app.wire.items.wanted_keys import WantedKeys
from tests.spark_app.items.generated import NUMBERS, Plain, attribute

NAMES = st.sampled_from(["id", "customer", "ship-to", "a.b", 'a "quoted" name', "größe", "_key"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
KEYS = st.dictionaries(
    NAMES, st.one_of(TEXTS, NUMBERS, st.binary(min_size=1, max_size=6)), min_size=1, max_size=2
)


def typed(key: Mapping[str, Plain]) -> dict[str, Any]:
    return {name: attribute(value) for name, value in key.items()}


def written(key: Mapping[str, Plain]) -> dict[str, str]:
    """Return the key as a person writes it: the texts of its columns' values."""
    return {column_of(name): str(text_of(value)) for name, value in typed(key).items()}


def record(
    keys: Mapping[str, Any] | None, table: str = "orders", is_ascii: bool = True, **images: Any
) -> bytes:
    change = {"ApproximateCreationDateTime": 1, **({} if keys is None else {"Keys": keys}), **images}
    content = {"eventName": "MODIFY", "tableName": table, "dynamodb": change}
    return json.dumps(content, ensure_ascii=is_ascii).encode()


@given(KEYS, KEYS, st.booleans(), st.randoms(use_true_random=False))
def test_a_key_is_found_in_its_records_and_in_its_row_and_no_other_key_is(
    key: Mapping[str, Plain], other: Mapping[str, Plain], is_ascii: bool, random: Any
) -> None:
    wanted = WantedKeys((written(key),), "orders")
    shuffled = dict(random.sample(list(typed(key).items()), len(key)))
    is_same = written(other) == written(key)

    assert wanted.in_record(record(shuffled, is_ascii=is_ascii)) == 0
    assert wanted.in_record_key(record_key(typed(key))) == 0
    assert wanted.in_record(record(shuffled, "notes")) is None
    if set(map(column_of, other)) == set(map(column_of, key)) and not is_same:
        found = wanted.in_record(record(typed(other)))
        assert found == wanted.in_record_key(record_key(typed(other)))
        # A text can stand for a number, too.
        if all(isinstance(value, str) for value in (*key.values(), *other.values())):
            assert found is None


@given(KEYS, st.booleans(), st.sampled_from(["cut", "broken", "bytes"]))
def test_a_key_is_found_in_a_record_that_nobody_can_parse(
    key: Mapping[str, Plain], is_ascii: bool, damage: str
) -> None:
    wanted = WantedKeys((written(key),), "orders")
    whole = record(typed(key), is_ascii=is_ascii, NewImage={"text": {"S": "the end"}})
    damaged = {"cut": whole[:-20], "broken": whole + b"}", "bytes": whole.replace(b"the end", b"\xff\xfe")}
    assert wanted.in_record(damaged[damage]) == 0
    assert WantedKeys((written(key),), "notes").in_record(damaged[damage]) is None


@pytest.mark.parametrize("text", ["7", "7.0", "7.000000", "+7", "0.7E1", "70e-1"])
@pytest.mark.parametrize("number", ["7", "7.0", "7E0"])
def test_equal_numbers_are_one_key(text: str, number: str) -> None:
    wanted = WantedKeys(({"id": text},), "orders")
    assert wanted.in_record(record({"id": {"N": number}})) == 0
    assert wanted.in_record_key(record_key({"id": {"N": number}})) == 0
    assert wanted.in_record(record({"id": {"N": "70"}})) is None


def test_two_texts_of_one_key_are_found_together() -> None:
    wanted = WantedKeys(({"id": "7"}, {"id": "7.0"}, {"id": "8"}), "orders")
    found = wanted.in_record(record({"id": {"N": "7"}}))
    assert [found in wanted.numbers_of(key) for key in wanted.keys] == [True, True, False]


def test_texts_are_compared_exactly_and_bytes_by_their_base64() -> None:
    wanted = WantedKeys(({"id": "7.0"}, {"id": base64.b64encode(b"\0\xff").decode()}), "orders")
    assert wanted.in_record(record({"id": {"S": "7"}})) is None
    assert wanted.in_record(record({"id": {"S": "7.0"}})) == 0
    assert wanted.in_record(record({"id": {"B": "AP8="}})) == 1
    assert wanted.in_record_key(record_key({"id": {"B": "AP8="}})) == 1
    assert wanted.in_record_key('{"id":"AP8"}') is None


def test_a_record_without_a_key_of_its_own_is_found_by_its_item() -> None:
    wanted = WantedKeys(({"customer": "ann", "number": "7"},), "orders")
    item = {"customer": {"S": "ann"}, "number": {"N": "7"}, "total": {"N": "1"}}
    part = {"customer": {"S": "ann"}}
    for found in (record(None, OldImage=item), record(part, NewImage=item), record(item)):
        assert wanted.in_record(found) == 0
    for other in (record(part), record(part, NewImage={**item, "number": {"N": "8"}}), b"{}", b"7", None):
        assert wanted.in_record(other) is None
    assert wanted.in_record(record({"customer": {"S": "bob"}, "number": {"N": "7"}}, NewImage=item)) is None


@pytest.mark.parametrize("text", [None, "", "7", "[1]", '{"id":', '{"id":null}', '{"id":[7]}', '{"other":7}'])
def test_a_text_that_is_no_record_key_has_no_key(text: str | None) -> None:
    assert WantedKeys(({"id": "7"},), "orders").in_record_key(text) is None


def test_large_numbers_keep_all_their_digits() -> None:
    number = Decimal("12345678901234567890123456789012345678")
    wanted = WantedKeys(({"id": str(number)},), "orders")
    assert wanted.in_record_key(record_key({"id": attribute(number)})) == 0
    assert wanted.in_record_key(record_key({"id": attribute(number - 1)})) is None
