"""The course of the demo with three databases: load, follow, trade, and watch a single sale on its way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import TopicPartition
from rich.console import Console

from spark_app.schema_registry.framing import unframed
from tributary.api.row_events import RowEvent
from tributary.cli.demo_steps import (
    DemoImpossible,
    DemoOutcome,
    Phases,
    following,
    meanwhile,
    reconcile_all,
    wait_until_lake_holds_all,
)
from tributary.cli.live_view import live_view
from tributary.cli.startup_view import start_pipeline
from tributary.contract.lake import Lake
from tributary.contract.source import Source
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import Seed
from tributary.local.status import read_status
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_topics import questions
from tributary.operations.workspace import Workspace
from tributary.tickit.generator import generate
from tributary.tickit.three_databases import (
    CUSTOMER_TABLES,
    EVENT_TABLES,
    SHOP,
    SHOP_TABLES,
    load_customers,
    load_events,
    load_shop,
    trade,
)
from tributary.tickit.workload import Plan, Summary

LAKE_FILE = "demo-engines-lake.toml"
SALES = "web.shop.sales"

STEP_SECONDS = 120.0
"""How long one step of a single change may take."""

_SECONDS_BETWEEN_LOOKS = 0.2
_SOURCES = {
    "web": (SHOP, SHOP_TABLES),
    "events": ("public", EVENT_TABLES),
    "crm": ("public", CUSTOMER_TABLES),
}
_LOADERS: Mapping[str, Callable[[Any, Any], int]] = {
    "web": load_shop,
    "events": load_events,
    "crm": load_customers,
}

Found = TypeVar("Found")


@dataclass(frozen=True)
class Stop:
    """A place that a change has reached, how many seconds after its commit, and what is there."""

    place: str
    seconds: float
    text: str


def check_lake(lake: Lake) -> None:
    """Raise `DemoImpossible` if the lake has other sources than the demo fills."""
    found = {source.name: source for source in lake.sources}
    is_ours = found.keys() == _SOURCES.keys() and all(
        source.connection is None and all(source.matches(schema, table.name) for table in tables)
        for name, (schema, tables) in _SOURCES.items()
        if (source := found[name])
    )
    if not is_ours or not lake.has_registry_here:
        raise DemoImpossible(
            "The demo loads databases of its own, and this lake file does not describe them",
            found=", ".join(found),
            expected=f"the sources {', '.join(_SOURCES)} without a connection, and a local registry",
            remedy="Run the demo in an empty folder, where it writes the lake file that it needs.",
        )


def run_demo(
    workspace: Workspace, scale: float, plan: Plan, phases: Phases, ask_lake: Callable[[datetime], None]
) -> DemoOutcome:
    """Run the demo on a pipeline that is not up yet, and leave it up. The Spark app is stopped in any case.

    `ask_lake` is called once everything is in the lake, with the time when the trade began.
    """
    console = phases.console
    with phases.phase("Starting MariaDB, PostgreSQL, a schema registry, Kafka, Connect and S3"):
        console.print(
            "  There is no SQL Server to fetch, so a second PostgreSQL database holds the customers.",
            highlight=False,
            soft_wrap=True,
        )
        start_pipeline(workspace, console, seed=_seed(scale, console))
    with following(workspace, console) as run, live_view(console) as show:
        with phases.phase("Ingesting the snapshots of the three databases"):
            meanwhile(partial(wait_until_lake_holds_all, workspace), run, show)
            trade_began = datetime.now(UTC)
        with phases.phase(f"Trading: {plan.transactions:,} transactions while the app follows"):
            workload = meanwhile(partial(_trade, workspace, plan), run, show)
            meanwhile(partial(wait_until_lake_holds_all, workspace), run, show)
        resident_bytes = read_status(workspace.state).resident_bytes
        with phases.phase("Following one sale: more tickets, then a refund"):
            stops = meanwhile(partial(_follow_one_sale, workspace), run, show)
    for stop in stops:
        console.print(
            f"  +{stop.seconds:5.1f} s  {stop.place:<9} {stop.text}", highlight=False, soft_wrap=True
        )
    with phases.phase("Asking the lake, which joins the three databases"):
        ask_lake(trade_began)
    with phases.phase("Reconciling every table with its database"):
        reconciliation = reconcile_all(workspace)
    return DemoOutcome(run.progress, workload, resident_bytes, reconciliation)


def _seed(scale: float, console: Console) -> Seed:
    rows = generate(scale)

    def load(source: Source, session: Any) -> None:
        started = time.monotonic()
        loaded = _LOADERS[source.name](session, rows)
        seconds = time.monotonic() - started
        console.print(f"  {loaded:,} rows loaded into {source.name} in {seconds:.1f} s", highlight=False)

    return load


def _session(workspace: Workspace, source: str) -> Any:
    wanted = workspace.lake.source(source)
    return SourceDatabase(workspace.lake, wanted, workspace.state, workspace.settings).connect()


def _trade(workspace: Workspace, plan: Plan, stop: threading.Event) -> Summary:
    with ExitStack() as opened:
        shop, events, customers = (opened.enter_context(_session(workspace, name)) for name in _SOURCES)
        return trade(shop, events, customers, plan, stop)


def _follow_one_sale(workspace: Workspace, stop: threading.Event) -> tuple[Stop, ...]:
    """Change a sale and delete it, and return where each change was seen, in the order of the times."""
    with _session(workspace, "web") as shop, shop.cursor() as cursor:
        cursor.execute("SELECT max(salesid) FROM shop.sales")
        (sale,) = cursor.fetchone()
        way = _Way(workspace, sale, stop)
        changed = way.of_change(
            "MariaDB",
            f"sale {sale} gets one more ticket",
            lambda: cursor.execute("UPDATE shop.sales SET qtysold = qtysold + 1 WHERE salesid = %s", (sale,)),
            "u",
        )
        before = datetime.now(UTC)
        refunded = way.of_change(
            "MariaDB",
            f"sale {sale} is refunded: its row is deleted",
            lambda: cursor.execute("DELETE FROM shop.sales WHERE salesid = %s", (sale,)),
            "d",
        )
    then = way.in_lake(before)
    earlier = f"SELECT … as of {before:%H:%M:%S.%f}"[:-3]
    text = f"{earlier}: qtysold = {then['qtysold']}, _deleted = {_shown(then['_deleted'])}"
    return (*changed, *refunded, Stop("silver", refunded[-1].seconds, text))


@dataclass(frozen=True)
class _Way:
    """The places in which a change of one sale is looked for."""

    workspace: Workspace
    sale: int
    stop: threading.Event

    def of_change(self, place: str, text: str, change: Callable[[], object], operation: str) -> list[Stop]:
        """Make the change, and return where it was seen, in the order of the times."""
        change()
        committed = time.time()
        with ThreadPoolExecutor(2) as pool:
            # Bronze and silver get the event at the same time, each in its own way.
            in_bronze = pool.submit(self._wait_for, lambda: self._event(operation))
            row, silver_at = self._wait_for(lambda: self._row_after(operation))
            event, bronze_at = in_bronze.result()
        record, _ = self._wait_for(lambda: self._record(event.topic, event.partition, event.offset))
        return [
            Stop(place, 0.0, text),
            *sorted(
                (
                    Stop("Kafka", record.at - committed, record.text),
                    Stop("silver", silver_at - committed, _silver_text(row)),
                    Stop("bronze", bronze_at - committed, f"the event, kept: {_changes_text(event)}"),
                ),
                key=lambda stop: stop.seconds,
            ),
        ]

    def in_lake(self, as_of: datetime | None = None) -> Mapping[str, Any]:
        """Return the sale's row in the lake."""
        query = f"SELECT * FROM {SALES} WHERE salesid = {self.sale}"
        rows: list[dict[str, Any]] = self.workspace.open_lake.sql(query, as_of).to_pylist()
        return rows[0] if rows else {}

    def _row_after(self, operation: str) -> Mapping[str, Any] | None:
        row = self.in_lake()
        return row if row.get("_op") == operation else None

    def _event(self, operation: str) -> RowEvent | None:
        events = self.workspace.open_lake.row_events(SALES, str(self.sale))
        return next((event for event in reversed(events) if event.op == operation), None)

    def _record(self, topic: str, partition: int, offset: int) -> _KafkaRecord | None:
        """Read one record of Kafka, whose time is that of Debezium's producer."""
        with questions(KafkaCluster(self.workspace.settings.kafka_bootstrap)) as consumer:
            consumer.assign([TopicPartition(topic, partition, offset)])
            message = consumer.poll(5.0)
        if message is None or message.error():
            return None
        value = message.value() or b""
        framed = unframed(value)
        framing = "" if framed is None else f" of Avro, schema {framed.schema.number}"
        text = f"{topic}, partition {partition}, offset {offset}: {len(value)} bytes{framing}"
        return _KafkaRecord(message.timestamp()[1] / 1000, text)

    def _wait_for(self, look: Callable[[], Found | None]) -> tuple[Found, float]:
        """Return what was found, and when, in seconds since 1970."""
        deadline = time.monotonic() + STEP_SECONDS
        while (found := look()) is None:
            if time.monotonic() > deadline or self.stop.wait(_SECONDS_BETWEEN_LOOKS):
                raise DemoImpossible(
                    "The change did not arrive",
                    where=f"sale {self.sale}",
                    found=f"nothing after {STEP_SECONDS:.0f} s",
                    remedy="See the logs in the state folder.",
                )
        return found, time.time()


@dataclass(frozen=True)
class _KafkaRecord:
    """When Debezium sent a record, in seconds since 1970, and a line about it."""

    at: float
    text: str


def _silver_text(row: Mapping[str, Any]) -> str:
    values = {name: row[name] for name in ("qtysold", "_op", "_deleted", "_offset")}
    return ", ".join(f"{name} = {_shown(value)}" for name, value in values.items())


def _changes_text(event: RowEvent) -> str:
    changed = ", ".join(f"{name} {old} → {new}" for name, (old, new) in event.changed.items())
    return changed or event.kind


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
