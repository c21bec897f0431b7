"""A transaction has the same number on each server that has it, and later ones have higher numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.engines.binlog.gtids import read_gtids
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from tests.connectors.test_kept_nulls import converter, field, record, struct, written

OLD, NEW = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "8a94f357-aab4-11df-86ab-c80aa9429489"
SOURCE = struct(
    "Source",
    field("snapshot"),
    field("gtid"),
    field("sequence"),
    field("file"),
    {"field": "pos", "type": "int64", "optional": False},
)


def numbered(
    jvm: Any,
    gtids: str | None,
    gtid: str | None,
    *,
    pos: int = 500,
    snapshot: str = "false",
) -> Any:
    """Return the `sequence` that the transform gives an event."""
    source = {"snapshot": snapshot, "gtid": gtid, "sequence": None, "file": "binlog.000009", "pos": pos}
    plain = record(jvm, struct("Envelope", {**SOURCE, "field": "source"}), {"source": source})
    offset = f'{{"pos": 500, "gtids": {json.dumps(gtids)}}}'.encode()
    sent = converter(jvm, **{"schemas.enable": "false"}).toConnectData("offsets", offset).value()
    event = jvm.org.apache.kafka.connect.source.SourceRecord(
        {}, sent, "t", None, None, None, plain.valueSchema(), plain.value()
    )
    transformed = jvm.io.tributary.connect.TransactionNumbers().apply(event)
    return written(jvm, transformed)["source"]["sequence"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gtids", "gtid", "number"),
    [
        (f"{OLD}:1-100", f"{OLD}:101", 101),
        # A restart sees the first transaction of a set that has it already.
        (f"{OLD}:1-101", f"{OLD}:101", 101),
        # The next primary has a UUID of its own.
        (f"{OLD}:1-101", f"{NEW}:1", 102),
        (f"{OLD}:1-101,{NEW}:1", f"{NEW}:2", 103),
        (f"{OLD}:1-50:60,\n{NEW.upper()}:7", f"{NEW}:7", 52),
        (f"{OLD}:1-50:nightly:1-3:5", f"{OLD}:nightly:4", 55),
        (f"{OLD}:1-50:nightly:1-3:5", f"{OLD}:nightly:5", 54),
        (f"{OLD}:5", f"{OLD}:5", 1),
        ("0-1-1000", "0-1-1001", 1001),
        ("0-1-1000,0-2-1001", "0-2-1002", 1002),
        ("0-1-1000,7-1-5", "7-1-6", 1006),
    ],
)
def test_a_number_counts_the_transactions_up_to_this_one(
    jvm: Any, gtids: str, gtid: str, number: int
) -> None:
    assert numbered(jvm, gtids, gtid) == f"{number}:0"


@pytest.mark.slow
def test_a_snapshot_has_the_number_of_the_last_transaction_that_it_saw(jvm: Any) -> None:
    assert numbered(jvm, f"{OLD}:1-100", None, snapshot="first") == "100:0"
    assert numbered(jvm, "0-1-1000", None, snapshot="true") == "1000:0"


@pytest.mark.slow
def test_without_gtids_an_event_has_no_number(jvm: Any) -> None:
    assert numbered(jvm, None, None) is None
    assert numbered(jvm, None, None, snapshot="true") is None
    assert numbered(jvm, f"{OLD}:1-100", None) is None, "GTIDs were turned off"
    assert numbered(jvm, f"{OLD}:1-100", None, snapshot="incremental") is None


@pytest.mark.slow
def test_a_byte_counts_from_the_beginning_of_the_transaction_if_it_is_known(jvm: Any) -> None:
    assert numbered(jvm, f"{OLD}:1-100", f"{OLD}:101", pos=760) == "101:260"
    # Of a transaction by XA, Debezium knows the end of the event instead.
    assert numbered(jvm, f"{OLD}:1-100", f"{OLD}:101", pos=400) == "101:400"


def test_the_connectors_of_both_engines_number_their_transactions() -> None:
    for engine in (MySqlEngine(), MariaDbEngine()):
        assert "transactionNumbers.type" in engine.mending


def test_a_set_of_gtids_tells_which_transactions_another_one_lacks() -> None:
    read = read_gtids(f"{OLD.upper()}:1-100:120,\n{NEW}:1-3")
    assert not read.without(read_gtids(f"{OLD}:1-120,{NEW}:1-3"))
    assert str(read.without(read_gtids(f"{OLD}:1-90:95-119"))) == f"{OLD}:91-94:120, {NEW}:1-3"
    assert str(read_gtids(f"{OLD}:1-5:tag:1-2").without(read_gtids(f"{OLD}:1-5"))) == f"{OLD}:tag:1-2"
    assert not read_gtids("0-1-1000").without(read_gtids("0-1-1000,0-2-1005"))
    assert str(read_gtids("0-2-1005").without(read_gtids("0-1-1003"))) == "0:1004-1005"
    assert not read_gtids(None)
    assert not read_gtids("")
