"""Every alarm, its threshold, and the section of the runbook that it leads to."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.base import TributaryStack
from stacks.database.password_alarms import PASSWORD_ROTATION, watched_passwords
from stacks.database.registry import ENGINES_ON_AWS
from stacks.functions.restart.main import METRIC as FOLLOW_DEATHS
from stacks.kafka.cluster import kafka_name
from stacks.metrics import (
    build_failures_metric,
    connector_metric,
    connectors,
    disk_metric,
    dropped_starts_metric,
    idle_metric,
    replication_metric,
    sink_lag_metric,
    stream_age_metric,
    stream_throttle_metric,
    streams_here,
    table_metric,
)
from stacks.watched import RUNBOOK, Threshold, Watched
from tributary.contract.aws_names import IngestMetric, VerificationMetric
from tributary.contract.patterns import WILDCARDS

SECTIONS: tuple[str, ...] = (
    *(section for engine in ENGINES_ON_AWS.values() for section in engine.sections),
    PASSWORD_ROTATION,
    "connector-failed",
    "sink-lag",
    "freshness",
    "table-blocked",
    "quarantine",
    "missing-classes",
    "not-accelerated",
    "step-failed",
    "follow-died",
    "kafka-disk",
    "kafka-cpu",
    "stream-age",
    "stream-throttled",
    "not-replicated",
    "dbt-failed",
    "rows-differ",
    "verify-failed",
)
"""The runbook's sections, each of which says what to do about an alarm."""

_MOST_DISK_PERCENT = 85
_MOST_AGE_MS = 30 * 60_000
"""Well below the 24 hours after which Kinesis deletes a record."""
_DEATHS = 3
"""The number of deaths of a follow job within an hour that a person has to know of."""
_LEAST_IDLE_PERCENT = 40
"""MSK's developer guide, "Best practices": user and system together stay below 60 %."""


class LakeAlarms(Construct):
    """All alarms of the lake, as `alarms`. Each notifies the topic when it rings and when it clears."""

    def __init__(self, stack: TributaryStack, construct_id: str, topic: sns.ITopic) -> None:
        super().__init__(stack, construct_id)
        self._stack, self._topic = stack, topic
        self.alarms = tuple(
            self._alarm(watched)
            for watched in (
                *_of_databases(stack),
                *_of_connectors(stack),
                *_of_tables(stack),
                *_of_jobs(stack),
                *_of_kafka(stack),
                *_of_streams(stack),
                *_of_dbt(stack),
                *_of_verification(stack),
            )
        )

    def _alarm(self, watched: Watched) -> cloudwatch.Alarm:
        name = "-".join(filter(None, (self._stack.names.resource, watched.section, watched.subject)))
        threshold = watched.threshold
        alarm = cloudwatch.Alarm(
            self,
            "-".join(filter(None, (watched.section, watched.subject))),
            alarm_name=name,
            alarm_description=f"{watched.says} What to do: {RUNBOOK}#{watched.section}",
            metric=watched.metric,
            threshold=threshold.limit,
            comparison_operator=(
                cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
                if threshold.is_least
                else cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
            ),
            datapoints_to_alarm=threshold.points,
            evaluation_periods=threshold.of,
            treat_missing_data=watched.missing,
        )
        tell = actions.SnsAction(self._topic)
        alarm.add_alarm_action(tell)
        alarm.add_ok_action(tell)
        if watched.silence:
            alarm.add_insufficient_data_action(tell)
        return alarm


def _of_databases(stack: TributaryStack) -> list[Watched]:
    engines = [watched for engine in ENGINES_ON_AWS.values() for watched in engine.watched(stack)]
    return [*engines, *watched_passwords(stack)]


def _of_connectors(stack: TributaryStack) -> list[Watched]:
    watched = []
    for name in connectors(stack):
        failed = connector_metric(name, "ErroredTaskCount", "Maximum")
        running = connector_metric(name, "RunningTaskCount", "Minimum")
        watched += [
            Watched(
                "connector-failed",
                f"A task of {name} has failed.",
                failed,
                Threshold(0, points=1, of=1),
                name,
            ),
            Watched(
                "connector-failed",
                f"No task of {name} runs.",
                running,
                Threshold(1, is_least=True, points=3, of=3),
                f"{name}-stopped",
                missing=cloudwatch.TreatMissingData.BREACHING,
            ),
        ]
    if connectors(stack):
        # A sink can run and yet consume nothing: its lag tells, its state does not.
        lag = sink_lag_metric(stack.lake.names.bronze_connector)
        limit = Threshold(stack.aws.alarms.sink_lag)
        watched.append(Watched("sink-lag", "Bronze is far behind Kafka.", lag, limit))
    return watched


def _of_streams(stack: TributaryStack) -> list[Watched]:
    """Return what is watched of the streams of items in the lake's own region."""
    late, refused = Threshold(_MOST_AGE_MS, points=5, of=5), Threshold(0, points=5, of=5)
    watched = []
    for name in streams_here(stack):
        reads, writes = (stream_throttle_metric(name, of) for of in ("Read", "Write"))
        watched += [
            Watched("stream-age", f"The stream {name} is read late.", stream_age_metric(name), late, name),
            Watched(
                "stream-throttled",
                f"Kinesis refuses reads of the stream {name}.",
                reads,
                refused,
                f"{name}-reads",
            ),
            Watched(
                "stream-throttled",
                f"Kinesis refuses records for the stream {name}.",
                writes,
                refused,
                f"{name}-writes",
            ),
        ]
    return [*watched, *_of_tables_with_streams(stack)]


def _of_tables_with_streams(stack: TributaryStack) -> list[Watched]:
    """Return what is watched of the tables that send their changes to a stream."""
    here = [
        source
        for source in stack.lake.item_sources
        if source.item_stream is not None and source.item_stream.region_of_stream in (None, stack.aws.region)
    ]
    taken = [pattern.table for source in here for pattern in source.patterns.include]
    own = [table for items in stack.aws.items.values() for table in items.tables]
    named = sorted({*own, *(table for table in taken if not _is_pattern(table))})
    limit = Threshold(0, points=1, of=1)
    watched = [
        Watched(
            "not-replicated",
            f"The table {table} could not send changes to its stream.",
            replication_metric(table),
            limit,
            table,
        )
        for table in named
    ]
    if any(map(_is_pattern, taken)):
        says = "Some table of the account could not send changes to its stream."
        # A query has no patterns. So this alarm also rings for other tables of the account.
        watched.append(Watched("not-replicated", says, replication_metric(None), limit))
    return watched


def _is_pattern(table: str) -> bool:
    return any(wildcard in table for wildcard in WILDCARDS)


def _of_tables(stack: TributaryStack) -> list[Watched]:
    lake, alarms = stack.lake.name, stack.aws.alarms
    return [
        Watched(
            "freshness",
            "The rows of some table are too old, or, without any values, no run of the Spark app goes on.",
            table_metric(lake, IngestMetric.FRESHNESS, "Maximum"),
            Threshold(alarms.freshness.total_seconds()),
            missing=cloudwatch.TreatMissingData.MISSING,
            silence=True,
        ),
        Watched(
            "table-blocked",
            "Some table waits for a person.",
            table_metric(lake, IngestMetric.BLOCKED, "Maximum"),
            Threshold(0, points=1, of=1),
            # A run that has ended says nothing of the table that it has left blocked.
            missing=cloudwatch.TreatMissingData.IGNORE,
        ),
        Watched(
            "quarantine",
            "Events that could not be read were set aside.",
            table_metric(lake, IngestMetric.QUARANTINED, "Sum", minutes=5),
            Threshold(alarms.quarantined, points=1, of=1),
        ),
        Watched(
            "missing-classes",
            "A table is blocked, because this release lacks a Java class or method that the app calls.",
            table_metric(lake, IngestMetric.MISSING_CLASSES, "Maximum"),
            Threshold(0, points=1, of=1),
            missing=cloudwatch.TreatMissingData.IGNORE,
        ),
        Watched(
            "not-accelerated",
            "The Spark app runs in plain PySpark, which is slower.",
            table_metric(lake, IngestMetric.NOT_ACCELERATED, "Maximum"),
            Threshold(0, points=1, of=1),
            # Each start says it once.
            missing=cloudwatch.TreatMissingData.IGNORE,
        ),
    ]


def _of_jobs(stack: TributaryStack) -> list[Watched]:
    if stack.aws.processing.restarts == 0:
        return []
    return [
        Watched(
            "follow-died",
            f"The follow job has died {_DEATHS} times within an hour.",
            table_metric(stack.lake.name, FOLLOW_DEATHS, "Maximum", minutes=5),
            Threshold(_DEATHS - 1, points=1, of=1),
        )
    ]


def _of_dbt(stack: TributaryStack) -> list[Watched]:
    if stack.aws.dbt is None:
        return []
    return _of_scheduled_job(f"{stack.names.resource}-dbt", "dbt-failed", "A dbt run")


def _of_verification(stack: TributaryStack) -> list[Watched]:
    if stack.aws.verify is None:
        return []
    differing = table_metric(stack.lake.name, VerificationMetric.DIFFERING_ROWS, "Maximum", minutes=5)
    return [
        Watched(
            "rows-differ",
            "Rows of some table differ from its source.",
            differing,
            Threshold(0, points=1, of=1),
            # Only a run knows, and between two runs there are no values.
            missing=cloudwatch.TreatMissingData.IGNORE,
        ),
        *_of_scheduled_job(f"{stack.names.resource}-verify", "verify-failed", "A verification"),
    ]


def _of_scheduled_job(name: str, section: str, run: str) -> list[Watched]:
    """Return what is watched of a job that CodeBuild runs on a schedule (`add_scheduled_job`)."""
    limit = Threshold(0, points=1, of=1)
    return [
        Watched(section, f"{run} has failed.", build_failures_metric(name), limit),
        Watched(section, f"{run} could not be started.", dropped_starts_metric(name), limit, "not-started"),
    ]


def _of_kafka(stack: TributaryStack) -> list[Watched]:
    """MSK Serverless looks after itself; Express brokers have no disks that could fill up."""
    kafka, cluster = stack.aws.kafka, kafka_name(stack)
    if kafka.kind == "serverless" or not stack.lake.connected_sources:
        return []
    idle = Threshold(_LEAST_IDLE_PERCENT, is_least=True)
    watched = [Watched("kafka-cpu", "A broker of Kafka has much to do.", idle_metric(cluster), idle)]
    if not kafka.is_express:
        used = Threshold(_MOST_DISK_PERCENT)
        watched.append(Watched("kafka-disk", "A disk of Kafka's is nearly full.", disk_metric(cluster), used))
    return watched
