"""The entries of `partition_by`: columns, and parts of key columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tributary.contract.lake import LakeFileError, TablePolicy, parse_lake
from tributary.contract.partitions import KeyPart, SourceColumn, parse_partition, stored_partition
from tributary.contract.table_name import TableName

SHOP = """
[lake]
name = "shop"
[source.web]
engine = "postgres"
database = "web"
tables = ["public.*"]
"""
ITEMS = """
[lake]
name = "shop"
[source.web]
engine = "dynamodb"
stream = "changes"
tables = ["orders"]
"""
ORDERS = TableName("web", "public", "orders")
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
PARTS = st.builds(KeyPart, st.sampled_from(["left", "right", "hash"]), NAMES, st.integers(2, 16))


def _lake(
    partition_by: str, *entries: str, file: str = SHOP, table: str = "web.public.orders"
) -> TablePolicy:
    lines = "\n".join((f'[table."{table}"]', f"partition_by = {partition_by}", *entries))
    return parse_lake(file + lines).policy(TableName.parse(table))


def test_columns_and_parts_of_key_columns_can_be_mixed() -> None:
    policy = _lake('["country", "right(id, 1)", "hash( id,64 )"]')
    assert policy.partitions == (
        SourceColumn("country"),
        KeyPart("right", "id", 1),
        KeyPart("hash", "id", 64),
    )
    assert policy.key_parts == policy.partitions[1:]
    assert [each.name for each in policy.partitions] == ["country", "id__right_1", "id__hash_64"]
    assert [each.column for each in policy.partitions] == ["country", "id", "id"]


def test_the_tenfold_layout_of_items_is_one_line() -> None:
    policy = _lake('["right(id, 1)"]', file=ITEMS, table="web.dynamodb.orders")
    assert policy.partitions == (KeyPart("right", "id", 1),)


@given(PARTS)
def test_a_part_is_known_again_by_its_text_and_by_the_name_of_its_column(part: KeyPart) -> None:
    assert parse_partition(str(part)) == part
    assert stored_partition(part.name) == part
    assert not part.name.startswith("_") or part.column.startswith("_")


@given(NAMES)
def test_every_other_name_is_a_column(name: str) -> None:
    assert parse_partition(name) == SourceColumn(name)
    assert stored_partition(name) == SourceColumn(name)


@pytest.mark.parametrize("name", ["weight (kg)", "(", "a)", "id (left)"])
def test_a_column_may_have_parentheses_in_its_name(name: str) -> None:
    assert _lake(f'["{name}"]').partitions == (SourceColumn(name),)


@pytest.mark.parametrize(
    ("partition_by", "where", "message"),
    [
        ('["right(id)"]', "partition_by[0]", 'wrong value: found "right(id)", expected a column, or a part'),
        ('["country", "first(id, 1)"]', "partition_by[1]", 'found "first(id, 1)"'),
        ('["right(id, 0)"]', "partition_by[0]", "left(column, n) or right(column, n), n from 1 to 16"),
        ('["left(id, 17)"]', "partition_by[0]", "n from 1 to 16"),
        ('["hash(id, 1)"]', "partition_by[0]", "hash(column, n), n from 2 to 1024"),
        ('["hash(id, 1025)"]', "partition_by[0]", "n from 2 to 1024"),
        ('["right(a.b, 1)"]', "partition_by[0]", 'found "right(a.b, 1)"'),
        ('[""]', "partition_by[0]", "expected a column, or a part"),
        ('["id__right_1"]', "partition_by[0]", "expected right(id, 1), if a part of a key column is meant"),
        ('["right(id, 1)", "right(id,1)"]', "partition_by", "different columns or parts of key columns"),
        ("[]", "partition_by", "at least one"),
        ('"right(id, 1)"', "partition_by", "expected a list"),
    ],
)
def test_a_wrong_entry_is_refused_with_what_is_allowed(partition_by: str, where: str, message: str) -> None:
    with pytest.raises(LakeFileError) as caught:
        _lake(partition_by)
    assert f'[table."web.public.orders"].{where}: ' in str(caught.value)
    assert message in str(caught.value)


def test_a_part_of_a_column_outside_the_key_is_refused() -> None:
    assert _lake('["left(line, 2)"]', 'key = ["invoice", "line"]').key_parts
    with pytest.raises(
        LakeFileError, match=r"outside the key: found left\(note, 2\), expected .*: invoice, line"
    ):
        _lake('["left(note, 2)"]', 'key = ["invoice", "line"]')


def test_the_key_of_routed_events_is_that_of_the_outbox() -> None:
    file = SHOP + '[source.web.outbox]\ntable = "public.events"\nid = "event"\n'
    assert _lake('["hash(event, 8)"]', file=file, table="web.outbox.orders").key_parts
    with pytest.raises(LakeFileError, match=r"outside the key: found hash\(id, 8\), expected .*: event"):
        _lake('["hash(id, 8)"]', file=file, table="web.outbox.orders")


@pytest.mark.parametrize("hidden", ["mask", "hash", "leave_out"])
def test_a_part_of_a_hidden_column_is_refused(hidden: str) -> None:
    with pytest.raises(LakeFileError, match=r"that the lake needs for partition_by is hidden: found id, "):
        _lake('["left(id, 1)", "right(id, 1)"]', f'{hidden} = ["id"]')
