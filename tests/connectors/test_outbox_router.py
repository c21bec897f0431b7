"""Debezium's event router, configured by the lake file, turns a row of an outbox into a row of its type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from connectors.engines.postgres.table_check import PostgresFindings, judge_tables
from connectors.engines.postgres.table_facts import TableFacts, UniqueKey
from connectors.engines.registry import engine_of
from tests.connectors.deployments import local_deployment
from tributary.contract.lake import parse_lake
from tributary.contract.table_name import TableName

LAKE = parse_lake(
    """
    [lake]
    name = "shop"

    [source.web]
    engine = "postgres"
    database = "app"
    tables = ["public.*"]

    [source.web.outbox]
    table = "public.my_events"
    type = "kind"
    payload = "content"
    columns = ["created_at"]
    """
)
SOURCE = LAKE.sources[0]
TOPIC = LAKE.source_names(SOURCE).topic("public", "my_events")
ROW = {
    "id": 7,
    "kind": "order_item",
    "aggregateid": "o1",
    "content": '{"a": 1}',
    "created_at": "t",
    "rest": 1,
}


def _config() -> Mapping[str, str]:
    return engine_of(SOURCE).render(LAKE, SOURCE, local_deployment(LAKE)).config


def test_the_connector_reads_the_outbox_and_routes_it_after_its_signals_are_gone() -> None:
    config = _config()
    assert config["transforms"] == "resumableOffsets,dropSignals,routeEvents,tellOperation"
    assert config["predicates"] == "isSignal,isOutbox,isRouted"
    without = parse_lake(
        '[lake]\nname = "shop"\n[source.w]\nengine = "postgres"\ndatabase = "a"\ntables = ["p.*"]'
    )
    plain = (
        engine_of(without.sources[0]).render(without, without.sources[0], local_deployment(without)).config
    )
    assert plain["predicates"] == "isSignal"
    assert not [option for option in plain if "routeEvents" in option or "isOutbox" in option]


def _judged(*columns: str, table: str = "my_events", keyed: bool = True) -> PostgresFindings:
    keys = (UniqueKey(frozenset({"id"}), is_primary=True),) if keyed else ()
    facts = TableFacts("public", table, columns, not_null=frozenset({"id"}), unique_keys=keys)
    return judge_tables(LAKE, SOURCE, [facts])  # type: ignore[arg-type]


def _problems(found: PostgresFindings) -> str:
    return " ".join(str(problem) for each in found.left_out for problem in each.problems)


def test_an_outbox_that_the_router_cannot_read_is_left_out() -> None:
    columns = ("id", "kind", "aggregateid", "content", "created_at")
    assert _judged(*columns).left_out == ()
    assert "an outbox without a column: found content, expected one of id, kind" in _problems(
        _judged(*columns[:3], "created_at")
    )
    # PostgreSQL would refuse the deletes of the application.
    assert _judged(*columns, keyed=False).left_out
    (warning,) = _judged(*columns, table="other_events").warnings
    assert "an outbox that does not exist" in warning


class _Chain:
    """The transforms of the config, as Connect would run them, with their predicates."""

    def __init__(self, jvm: Any, config: Mapping[str, str]) -> None:
        self._connect = jvm.org.apache.kafka.connect
        self._jvm = jvm
        self.steps = [
            (self._made(config, f"transforms.{name}."), self._predicate(config, name))
            for name in config["transforms"].split(",")
        ]
        self._json = self._connect.json.JsonConverter()
        self._json.configure({"schemas.enable": "true"}, False)

    def _made(self, config: Mapping[str, str], prefix: str) -> Any:
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        found = self._jvm.java.lang.Class.forName(config[f"{prefix}type"], True, loader)
        made = found.getDeclaredConstructor(None).newInstance(None)
        options = {
            name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)
        }
        own = {name: value for name, value in options.items() if name not in ("type", "predicate")}
        assert own.keys() <= set(made.config().names()), prefix
        made.configure(own)
        return made

    def _predicate(self, config: Mapping[str, str], transform: str) -> Any:
        name = config.get(f"transforms.{transform}.predicate")
        return None if name is None else self._made(config, f"predicates.{name}.")

    def __call__(self, event: Any, topic: str = TOPIC) -> tuple[str, Any, Any] | None:
        """Return the record's topic, key and value after the transforms; None if they drop it."""
        came = self._json.toConnectData(topic, None if event is None else json.dumps(event).encode())
        string = self._connect.data.Schema.STRING_SCHEMA
        record = self._connect.source.SourceRecord(
            {"server": "shop"}, {"lsn": 1}, topic, string, "pk", came.schema(), came.value()
        )
        for step, predicate in self.steps:
            if predicate is None or predicate.test(record):
                record = step.apply(record)
            if record is None:
                return None
        sent = self._json.fromConnectData(record.topic(), record.valueSchema(), record.value())
        return record.topic(), record.key(), None if sent is None else json.loads(bytes(sent))


def _event(op: str, after: Any, before: Any = None) -> Any:
    fields = [
        {"field": name, "type": "int64" if isinstance(value, int) else "string", "optional": True}
        for name, value in ROW.items()
    ]
    row = {"type": "struct", "fields": fields, "optional": True, "name": "row"}
    source = {
        "type": "struct",
        "field": "source",
        "optional": False,
        "fields": [{"type": "string", "field": "table", "optional": False}],
    }
    schema = {
        "type": "struct",
        "name": f"{TOPIC}.Envelope",
        "version": 2,
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            source,
            {"type": "string", "field": "op", "optional": False},
            {"type": "int64", "field": "ts_ms", "optional": True},
        ],
    }
    payload = {"before": before, "after": after, "source": {"table": "my_events"}, "op": op, "ts_ms": 5}
    return {"schema": schema, "payload": payload}


@pytest.fixture(scope="module")
def chain(jvm: Any) -> _Chain:
    return _Chain(jvm, _config())


@pytest.mark.slow
@pytest.mark.parametrize("op", ["c", "r"])
def test_an_inserted_row_becomes_an_unwrapped_row_of_its_type(chain: _Chain, op: str) -> None:
    sent = chain(_event(op, ROW))
    assert sent is not None
    topic, key, value = sent
    assert LAKE.table_of_topic(topic) == TableName("web", "outbox", "order_item")
    assert key == "o1"
    expected = {"id": 7, "kind": "order_item", "aggregateid": "o1", "created_at": "t", "payload": '{"a": 1}'}
    assert value["payload"] == {**expected, "__op": "c"}


@pytest.mark.slow
def test_deletes_updates_and_tombstones_of_the_outbox_reach_no_topic(chain: _Chain) -> None:
    assert chain(_event("d", None, ROW)) is None
    assert chain(_event("u", ROW, ROW)) is None
    assert chain(None) is None


@pytest.mark.slow
def test_other_tables_pass_unchanged(chain: _Chain) -> None:
    names = LAKE.source_names(SOURCE)
    for table in ("orders", "my_events2"):
        event = _event("u", ROW, ROW)
        sent = chain(event, names.topic("public", table))
        assert sent is not None
        assert sent[0] == names.topic("public", table)
        assert sent[2]["payload"] == event["payload"]
