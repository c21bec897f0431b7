"""The dashboard: a lake on one page, from the database's log to the rows in silver."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from stacks.base import TributaryStack
from stacks.database.registry import ENGINES_ON_AWS
from stacks.kafka.cluster import kafka_name
from stacks.metrics import (
    connector_metric,
    connectors,
    disk_metric,
    idle_metric,
    sink_lag_metric,
    stream_age_metric,
    streams_here,
)
from stacks.watched import Graph
from tributary.contract.aws_names import METRICS_NAMESPACE, IngestMetric, VerificationMetric

_TABLES = (
    ("How old are the rows? (seconds)", IngestMetric.FRESHNESS, "Maximum"),
    ("Events that are not applied yet", IngestMetric.LAG, "Maximum"),
    ("Events applied", IngestMetric.EVENTS, "Sum"),
    ("Events set aside", IngestMetric.QUARANTINED, "Sum"),
    ("Blocked tables", IngestMetric.BLOCKED, "Maximum"),
    ("A commit (seconds)", IngestMetric.COMMIT_TIME, "p95"),
)
_VERIFIED = (
    ("Rows that differ from the source", VerificationMetric.DIFFERING_ROWS, "Maximum"),
    ("Tables that were not found equal as a whole", VerificationMetric.UNPROVEN, "Maximum"),
    ("How old is the proof that a table is equal? (seconds)", VerificationMetric.PROOF_AGE, "Maximum"),
)


class LakeDashboard(Construct):
    """A page of graphs with one line per table. New tables appear by themselves."""

    def __init__(self, stack: TributaryStack, construct_id: str, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        super().__init__(stack, construct_id)
        page = cloudwatch.Dashboard(
            self, "Page", dashboard_name=stack.names.resource, default_interval=Duration.hours(3)
        )
        page.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=24))
        for first in range(0, len(_TABLES), 3):
            page.add_widgets(*(_by_table(stack.lake.name, *graph) for graph in _TABLES[first : first + 3]))
        if stack.aws.verify is not None:
            page.add_widgets(*(_by_table(stack.lake.name, *graph) for graph in _VERIFIED))
        page.add_widgets(*_on_the_way(stack))


def _by_table(lake: str, title: str, name: str, statistic: str) -> cloudwatch.GraphWidget:
    search = f'{{{METRICS_NAMESPACE},Lake,Table}} Lake="{lake}" MetricName="{name}"'
    return _graph(
        title,
        cloudwatch.MathExpression(
            expression=f"SEARCH('{search}', '{statistic}', 60)",
            using_metrics={},
            label="",
            period=Duration.minutes(1),
        ),
    )


def _on_the_way(stack: TributaryStack) -> list[cloudwatch.GraphWidget]:
    graphs = [graph for engine in ENGINES_ON_AWS.values() for graph in engine.graphs(stack)]
    if running := connectors(stack):
        tasks = [connector_metric(name, "RunningTaskCount", "Minimum").with_(label=name) for name in running]
        graphs.append(Graph("Tasks of the connectors that run", tuple(tasks)))
        graphs.append(Graph("Events by which bronze is behind", (sink_lag_metric(running[-1]),)))
    if stack.lake.connected_sources and stack.aws.kafka.kind == "provisioned":
        used, idle = disk_metric(kafka_name(stack)), idle_metric(kafka_name(stack))
        graphs.append(Graph("Kafka: disk used, processor idle (%)", (used, idle)))
    if streams := streams_here(stack):
        ages = tuple(stream_age_metric(stream).with_(label=stream) for stream in streams)
        graphs.append(Graph("How late are streams read? (milliseconds)", ages))
    return [_graph(graph.title, *graph.metrics) for graph in graphs]


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=8, height=6)
