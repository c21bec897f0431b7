"""The numbers of a lake in the form that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tributary.console.view import LakeView
from tributary.operations.verify.view import verified_as_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MILLISECONDS = 1000


def exposition(view: LakeView) -> bytes:
    """Return the view as Prometheus's text. The names are in docs/console.md."""
    registry = CollectorRegistry()
    registry.register(_Once(list(_gauges(view))))
    return generate_latest(registry)


class _Once(Collector):
    """A collector of metrics that are there already."""

    def __init__(self, metrics: Iterable[GaugeMetricFamily]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._metrics


def _gauges(view: LakeView) -> Iterator[GaugeMetricFamily]:
    well = GaugeMetricFamily("tributary_well", "1 if no part of the lake needs a person, else 0")
    well.add_metric([], float(view.is_well))
    yield well
    up = GaugeMetricFamily("tributary_server_up", "1 if the server runs", labels=["server"])
    # Of jobs with one name, only one runs, and the latest comes first.
    for server in {server.name: server for server in reversed(view.pipeline.servers)}.values():
        up.add_metric([server.name], float(server.runs))
    yield up
    memory = GaugeMetricFamily(
        "tributary_server_resident_bytes", "The server's resident memory", labels=["server"]
    )
    for server in view.pipeline.servers:
        if server.resident_bytes is not None:
            memory.add_metric([server.name], server.resident_bytes)
    yield memory
    running = GaugeMetricFamily(
        "tributary_connector_running", "1 if the connector and its tasks run", labels=["connector"]
    )
    for connector in view.pipeline.connectors:
        running.add_metric([connector.name], float(connector.runs))
    yield running
    if view.steps is not None:
        accelerated = GaugeMetricFamily(
            "tributary_accelerated", "1 if the Spark app uses its Java, 0 if it runs in plain PySpark"
        )
        accelerated.add_metric([], float(view.steps.steps == "accelerated"))
        yield accelerated
    yield from _gauges_of_logs(view)
    yield from _gauges_of_tables(view)


def _gauges_of_logs(view: LakeView) -> Iterator[GaugeMetricFamily]:
    unread = GaugeMetricFamily(
        "tributary_source_log_unread_bytes",
        "Log of the source's database that its connector has yet to read",
        labels=["source"],
    )
    kept = GaugeMetricFamily(
        "tributary_source_log_kept_bytes", "Log that the source's database keeps", labels=["source"]
    )
    for source, log in view.logs.items():
        if log.unread is not None:
            unread.add_metric([source], log.unread)
        if log.kept is not None:
            kept.add_metric([source], log.kept)
    yield from (unread, kept)


def _gauges_of_tables(view: LakeView) -> Iterator[GaugeMetricFamily]:
    of_table = ["table"]
    state = GaugeMetricFamily(
        "tributary_table_state", "1 for the state that the table is in", labels=["table", "state"]
    )
    well = GaugeMetricFamily(
        "tributary_table_well", "1 if the table needs no person, else 0", labels=of_table
    )
    behind = GaugeMetricFamily(
        "tributary_table_events_behind", "Events in the topic that the table has not applied", labels=of_table
    )
    last = GaugeMetricFamily(
        "tributary_table_last_commit_timestamp_seconds",
        "When the last commit that applied events was completed",
        labels=of_table,
    )
    fresh = GaugeMetricFamily(
        "tributary_table_freshness_seconds",
        "Age of the last commit's streamed changes when they became readable",
        labels=["table", "quantile"],
    )
    verified = GaugeMetricFamily(
        "tributary_table_verified_timestamp_seconds",
        "The time as of which all rows were found equal to the source's",
        labels=of_table,
    )
    differing = GaugeMetricFamily(
        "tributary_table_rows_different",
        "Rows that the verification found to differ from the source's",
        labels=of_table,
    )
    quarantined = GaugeMetricFamily(
        "tributary_table_quarantined_events", "Events of the table in quarantine", labels=of_table
    )
    for table in view.tables:
        name = str(table.table)
        if view.quarantined is not None:
            quarantined.add_metric([name], view.quarantined.get(table.table, 0))
        if table.verified is not None:
            differing.add_metric([name], table.verified.differences)
            if (moment := verified_as_of(table.verified)) is not None:
                verified.add_metric([name], moment.timestamp())
        state.add_metric([name, table.state], 1)
        well.add_metric([name], float(table.is_well))
        if table.behind is not None:
            behind.add_metric([name], table.behind)
        if table.commit is not None:
            last.add_metric([name], table.commit.completed.timestamp())
            if (freshness := table.commit.freshness) is not None:
                fresh.add_metric([name, "0.5"], freshness.p50 / _MILLISECONDS)
                fresh.add_metric([name, "0.95"], freshness.p95 / _MILLISECONDS)
    yield from (state, well, behind, last, fresh, verified, differing, quarantined)
