"""A transaction has the same number on each server that has it, and later ones have higher numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connectors.engines.binlog.gtids import read_gtids
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from connectors.engines.registry import engine_of
from connectors.plugins import build_plugins, unpack_plugins
from tests.conftest import running_jvm
from tests.connectors.deployments import local_deployment
from tests.connectors.test_kept_nulls import converter, field, record, struct, written
from tributary.contract.lake import parse_lake

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
    transformed = jvm.io.tributary.connect.binlog.TransactionNumbers().apply(event)
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
    ],
)
def test_a_number_counts_the_transactions_up_to_this_one(
    jvm: Any, gtids: str, gtid: str, number: int
) -> None:
    assert numbered(jvm, gtids, gtid) == f"{number}:0"


@pytest.mark.slow
def test_a_snapshot_has_the_number_of_the_last_transaction_that_it_saw(jvm: Any) -> None:
    assert numbered(jvm, f"{OLD}:1-100", None, snapshot="first") == "100:0"
    assert numbered(jvm, f"{OLD}:1-100", None, snapshot="true") == "100:0"


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


class Run:
    """A run of a connector from an offset on, with Debezium's own offsets and sources of events."""

    def __init__(self, jvm: Any, engine: str, stored: Mapping[str, Any]) -> None:
        self.jvm = jvm
        title = {"mysql": "MySql", "mariadb": "MariaDb"}[engine]
        package = getattr(jvm.io.debezium.connector, engine)
        lake = parse_lake(f'[lake]\nname = "shop"\n[source.web]\nengine = "{engine}"\ntables = ["shop.*"]\n')
        source = lake.source("web")
        options = engine_of(source).render(lake, source, local_deployment(lake)).config
        config = getattr(jvm.io.debezium.config.Configuration, "from")(dict(options))
        read = getattr(package, f"{title}ConnectorConfig")(config)
        loader = getattr(package, f"{title}OffsetContext$Loader")(read)
        self.json = converter(jvm, **{"schemas.enable": "false"})
        self.context = loader.load(self.json.toConnectData("o", json.dumps(stored).encode()).value())
        self.transform = jvm.io.tributary.connect.binlog.TransactionNumbers()

    def transaction(self, gtid: str, gtids: str, begin: int, *events: int) -> list[Any]:
        """Return the sequences of a transaction's events at these bytes, of two rows each."""
        self.context.setEventPosition(begin - 80, 80)
        self.context.startGtid(gtid, gtids)
        self.context.setEventPosition(begin, 60)
        self.context.startNextTransaction()
        self.context.completeEvent()
        found = []
        for event in events:
            self.context.setEventPosition(event, 100)
            for row in range(2):
                self.context.setRowNumber(row, 2)
                found.append(self.sequence())
            self.context.changeEventCompleted()
            self.context.completeEvent()
        self.context.setEventPosition(events[-1] + 100, 30)
        self.context.commitTransaction()
        return found

    def sequence(self) -> Any:
        source = self.context.getSourceInfo()
        builder = self.jvm.org.apache.kafka.connect.data.SchemaBuilder.struct()
        schema = builder.field("source", source.schema()).build()
        value = self.jvm.org.apache.kafka.connect.data.Struct(schema).put("source", source)
        event = self.jvm.org.apache.kafka.connect.source.SourceRecord(
            {}, self.context.getOffset(), "t", None, None, None, schema, value
        )
        return self.transform.apply(event).value().getStruct("source").getString("sequence")


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def connector(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """An engine's name, and a JVM with its connector."""
    plugins = unpack_plugins(build_plugins(names=(f"debezium-connector-{request.param}",)))
    with running_jvm([folder / "*" for folder in plugins.iterdir()]) as running:
        yield str(request.param), running


@pytest.mark.slow
@pytest.mark.parametrize("connector", ["mysql"], indirect=True)
def test_debeziums_events_get_the_same_numbers_from_the_log_of_a_replica(
    connector: tuple[str, Any],
) -> None:
    engine, jvm = connector
    stored = {"file": "binlog.000030", "pos": 900_000, "gtids": f"{OLD}:1-100"}
    old, new = Run(jvm, engine, stored), Run(jvm, engine, stored)
    new.context.setBinlogStartPoint("binlog.000002", 4)
    first, after_first = f"{OLD}:101", f"{OLD}:1-101"

    of_old = old.transaction(first, after_first, 900_080, 900_140, 900_240)
    of_new = new.transaction(first, after_first, 280, 340, 440)

    assert of_old == ["101:60", "101:60", "101:160", "101:160"]
    assert of_new == of_old
    assert new.transaction(f"{NEW}:1", f"{after_first},{NEW}:1", 800, 870) == ["102:70", "102:70"]


@pytest.mark.slow
def test_debezium_resumes_at_a_promoted_mysql_that_has_all_and_at_no_promoted_mariadb(
    connector: tuple[str, Any],
) -> None:
    engine, jvm = connector

    def resumes(read: str, on_server: str) -> bool:
        """Return what BinlogConnectorConnection.isBinlogPositionAvailable asks first."""
        sets = jvm.io.debezium.connector
        kind = sets.mysql.gtid.MySqlGtidSet if engine == "mysql" else sets.mariadb.gtid.MariaDbGtidSet
        return bool(kind(read).isContainedWithin(kind(on_server)))

    if engine == "mysql":
        assert resumes(f"{OLD}:1-101", f"{OLD}:1-101,{NEW}:1-7")
        assert not resumes(f"{OLD}:1-101", f"{OLD}:1-100,{NEW}:1-7")
    else:
        assert resumes("0-1-101", "0-1-105")
        # The new server has the transaction 101, but its position names its own last transaction only.
        assert not resumes("0-1-101", "0-2-105")


def test_only_the_connector_of_mysql_numbers_its_transactions() -> None:
    assert "transactionNumbers.type" in MySqlEngine().mending
    assert "transactionNumbers.type" not in MariaDbEngine().mending


def test_a_set_of_gtids_tells_which_transactions_another_one_lacks() -> None:
    read = read_gtids(f"{OLD.upper()}:1-100:120,\n{NEW}:1-3")
    assert not read.without(read_gtids(f"{OLD}:1-120,{NEW}:1-3"))
    assert str(read.without(read_gtids(f"{OLD}:1-90:95-119"))) == f"{OLD}:91-94:120, {NEW}:1-3"
    assert str(read_gtids(f"{OLD}:1-5:tag:1-2").without(read_gtids(f"{OLD}:1-5"))) == f"{OLD}:tag:1-2"
    assert not read_gtids(None)
    assert not read_gtids("")
