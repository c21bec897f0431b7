"""A zero timestamp from MariaDB's log is NULL, as it is from a snapshot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from tests.connectors.deployments import local_deployment
from tests.connectors.test_kept_nulls import field, record, struct, written
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import parse_lake

ZONED = "io.debezium.time.ZonedTimestamp"
ROW = (
    {**field("seen", default="2020-01-01T00:00:00Z"), "name": ZONED},
    {"field": "made", "type": "string", "optional": False, "name": ZONED},
    field("note"),
)
SCHEMA = struct(
    "Envelope",
    {**struct("Row", *ROW), "field": "before", "optional": True},
    {**struct("Row", *ROW), "field": "after", "optional": True},
    field("op"),
)


def row(seen: str | None) -> dict[str, Any]:
    return {"seen": seen, "made": "1970-01-01T00:00:00Z", "note": "1970-01-01T00:00:00Z"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "is_zero"),
    [
        ("1970-01-01T00:00:00Z", True),
        ("1970-01-01T00:00:00.000000Z", True),
        ("1970-01-01T00:00:01Z", False),
        ("2024-02-29T12:34:56.123456Z", False),
        (None, True),
    ],
)
def test_a_zero_timestamp_becomes_null_where_the_column_may_be_null(
    jvm: Any, text: str | None, is_zero: bool
) -> None:
    before = record(jvm, SCHEMA, {"before": row("1970-01-01T00:00:00Z"), "after": row(text), "op": "u"})
    after = jvm.io.tributary.connect.binlog.ZeroTimestamps().apply(before)
    kept = jvm.io.tributary.connect.KeptNulls().apply(after)
    assert written(jvm, kept) == {"before": row(None), "after": row(None if is_zero else text), "op": "u"}


@pytest.mark.slow
def test_a_record_without_rows_stays(jvm: Any) -> None:
    before = record(jvm, struct("Other", {**field("seen"), "name": ZONED}), {"seen": "1970-01-01T00:00:00Z"})
    assert written(jvm, jvm.io.tributary.connect.binlog.ZeroTimestamps().apply(before)) == json.loads(
        '{"seen": "1970-01-01T00:00:00Z"}'
    )


def test_mariadbs_connector_mends_a_row_before_it_is_masked() -> None:
    transforms = {}
    for engine in (MariaDbEngine(), MySqlEngine()):
        lake = parse_lake(
            f'[lake]\nname = "shop"\n[source.web]\nengine = "{type(engine).__name__[:-6].lower()}"\n'
            'tables = ["shop.*"]\n[table."web.shop.orders"]\nhash = ["seen"]\n'
        )
        (source,) = lake.sources
        assert isinstance(source, BinlogSource)
        transforms[engine.title] = engine.render(lake, source, local_deployment(lake)).config["transforms"]
    names = transforms["MariaDB"].split(",")
    assert names.index("zeroTimestamps") < names.index("maskedColumns")
    assert "zeroTimestamps" not in transforms["MySQL"]
