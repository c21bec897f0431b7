"""A source of items is described by its tables, its stream and rules for items; mistakes are named."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tributary.contract.column_types import ColumnType
from tributary.contract.item_stream import ItemRules
from tributary.contract.lake import LakeFileError, parse_lake
from tributary.contract.table_name import TableName
from tributary.local.dynamodb import Destination, destinations_here

ARN = "arn:aws:kinesis:eu-central-1:111122223333:stream/changes"


def _lake(entries: str = "", stream: str = ARN, tables: str = '["orders", "shop_*", "!shop_tmp?"]') -> str:
    return f"""
[lake]
name = "shop"

[source.web]
engine = "dynamodb"
tables = {tables}
stream = "{stream}"
{entries}
"""


def test_a_source_takes_tables_by_their_names() -> None:
    (source,) = parse_lake(_lake()).sources
    taken = [name for name in ("orders", "shop_a", "shop_tmp1", "other") if source.matches("dynamodb", name)]
    assert taken == ["orders", "shop_a"]
    assert not source.matches("public", "orders")


def test_a_topic_of_a_table_tells_the_table() -> None:
    lake = parse_lake(_lake())
    topic = lake.source_names(lake.sources[0]).topic("dynamodb", "shop_a-b")
    assert lake.table_of_topic(topic) == TableName("web", "dynamodb", "shop_a-b")


@pytest.mark.parametrize(
    ("stream", "entries", "name", "region"),
    [
        (ARN, "", "changes", "eu-central-1"),
        ("s", "", "s", None),
        ("s", 'region = "us-east-1"', "s", "us-east-1"),
    ],
)
def test_the_stream_has_a_name_and_a_region(stream: str, entries: str, name: str, region: str | None) -> None:
    (source,) = parse_lake(_lake(entries, stream)).item_sources
    assert source.item_stream is not None
    assert (source.item_stream.name, source.item_stream.region_of_stream) == (name, region)


def test_the_rules_of_a_table_have_its_types() -> None:
    entries = """
attributes = "json"
ttl_deletes = "ignore"
deletes_remembered = "2h"
types = { orders = { total = "decimal(18, 2)", "a.b" = "json" } }
exports = { orders = "s3://bucket/some prefix/AWSDynamoDB/0123-ab" }
"""
    (source,) = parse_lake(_lake(entries)).sources
    assert source.item_stream is not None
    assert source.item_stream.exports == (("orders", "s3://bucket/some prefix/AWSDynamoDB/0123-ab"),)
    types = (("total", ColumnType("numeric", (18, 2))), ("a.b", ColumnType("json")))
    assert source.item_rules("orders") == ItemRules("json", types, "ignore", timedelta(hours=2))
    assert source.item_rules("shop_a") == ItemRules("json", (), "ignore", timedelta(hours=2))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('region = "mars"', r'\.region: wrong value: found "mars", expected a region'),
        ('region = "us-east-1"', r"another region than the stream's: found us-east-1, expected eu-central-1"),
        ('types = { orders = { a = "numeric" } }', r"\.types: .* numeric needs its digits"),
        ('types = { orders = { a = "numeric(39,2)" } }', r"\.types: .* at most 38"),
        ('types = { orders = { a = "uuid" } }', r"\.types: .*expected text, bigint"),
        ('types = { other = { a = "text" } }', r"types of a table that is not taken: found other"),
        (
            'exports = { other = "s3://bucket/AWSDynamoDB/0123-ab" }',
            r"an export of a table that is not taken",
        ),
        ('exports = { orders = "s3://bucket/orders" }', r"\.exports: .*AWSDynamoDB/ID"),
        ('exports = ["s3://bucket/AWSDynamoDB/0123-ab"]', r"\.exports: .*the folders of their exports"),
        (
            'initial_load = false\nexports = { orders = "s3://bucket/p/AWSDynamoDB/0123-ab" }',
            r"exports, although no items are read: found initial_load = false",
        ),
        ('attributes = "colums"', r"Did you mean columns\?"),
        ("partitions = 3", r"a stream of items has no partitions: found 3"),
        ('[source.web.connection]\nhost = "h"\nport = 1\npassword_env = "P"', r"no server to connect to"),
        ('[source.web.endpoints]\nkinesis = "localhost"\ndynamodb = "http://h:1"', r"expected an address"),
        ('[table."web.dynamodb.orders"]\nkey = ["id"]', r"an entry that tables of items do not have"),
        (
            '[aws]\nregion = "eu-central-1"\n[aws.items.web]',
            r"a stream that the lake creates is in the lake's own account and region: found arn:",
        ),
        (
            '[aws]\nregion = "eu-central-1"\n[aws.kafka.cluster]\n'
            'arn = "arn:aws:kafka:eu-central-1:111122223333:cluster/c/0a1b-7"\n'
            'bootstrap_servers = "b-1.c.example.org:9098"\nsecurity_group = "sg-0123456789abcdef0"',
            r"no source of the lake sends its changes through Kafka",
        ),
        (
            '[source.db]\nengine = "postgres"\ndatabase = "d"\ntables = ["public.*"]\n'
            '[aws]\nregion = "eu-central-1"\n[aws.source.web]\nhost = "h"\nport = 1\n'
            'secret = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:s-AbCdEf"',
            r"has no database server to name",
        ),
    ],
)
def test_a_mistake_is_named(entries: str, message: str) -> None:
    with pytest.raises(LakeFileError) as error:
        parse_lake(_lake(entries))
    assert re.search(message, str(error.value)), str(error.value)


@pytest.mark.parametrize(
    ("stream", "entries"),
    [
        (ARN, ""),
        ("changes", 'region = "eu-central-1"'),
    ],
)
def test_two_sources_do_not_share_a_stream(stream: str, entries: str) -> None:
    other = f'[source.other]\nengine = "dynamodb"\ntables = ["x"]\nstream = "{stream}"\n{entries}'
    with pytest.raises(LakeFileError, match=r"the source web reads the same stream.*found " + stream):
        parse_lake(f"{_lake()}\n{other}")


@pytest.mark.parametrize(
    ("stream", "entries"),
    [
        ("others", 'region = "eu-central-1"'),
        (ARN.replace("1111", "4444"), ""),
        ("changes", 'region = "us-east-1"'),
        (
            "changes",
            'region = "eu-central-1"\nendpoints = { kinesis = "http://h:1", dynamodb = "http://h:2" }',
        ),
    ],
)
def test_two_sources_have_streams_with_one_name_in_different_places(stream: str, entries: str) -> None:
    other = f'[source.other]\nengine = "dynamodb"\ntables = ["x"]\nstream = "{stream}"\n{entries}'
    assert len(parse_lake(f"{_lake()}\n{other}").sources) == 2


@pytest.mark.parametrize("tables", ['["!a"]', '["public.orders"]', '["a b"]', "[]"])
def test_patterns_are_names_of_tables(tables: str) -> None:
    with pytest.raises(LakeFileError, match=r"\.tables"):
        parse_lake(_lake(tables=tables))


def test_the_local_database_sends_the_tables_that_the_patterns_take() -> None:
    (found,) = destinations_here(parse_lake(_lake()))
    names = ("orders", "orders2", "shop_a", "shop_tmp1", "shop_tmp12")
    assert found == Destination("eu-central-1", "changes", found.tables)
    assert [name for name in names if re.fullmatch(found.tables, name)] == ["orders", "shop_a", "shop_tmp12"]
