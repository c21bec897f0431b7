"""The CloudWatch metrics of a lake: namespaces, names, dimensions and queries."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from stacks.base import TributaryStack
from tributary.contract.aws_names import METRICS_NAMESPACE


def table_metric(lake: str, name: str, statistic: str, minutes: int = 1) -> cloudwatch.Metric:
    """Return a metric over all tables, including those that no lake file names."""
    return _metric(METRICS_NAMESPACE, name, statistic, minutes, {"Lake": lake})


def connector_metric(connector: str, name: str, statistic: str) -> cloudwatch.Metric:
    return _metric("AWS/KafkaConnect", name, statistic, 5, {"ConnectorName": connector})


def streams_here(stack: TributaryStack) -> list[str]:
    """Return the names of the streams of items that are in the lake's own region."""
    streams = (source.item_stream for source in stack.lake.item_sources)
    return sorted(
        {
            stream.name
            for stream in streams
            if stream is not None and stream.region_of_stream in (None, stack.aws.region)
        }
    )


def stream_age_metric(stream: str) -> cloudwatch.Metric:
    """Return how old the records of a stream are when they are read, in milliseconds."""
    name, dimensions = "GetRecords.IteratorAgeMilliseconds", {"StreamName": stream}
    return _metric("AWS/Kinesis", name, "Maximum", 1, dimensions)


def stream_throttle_metric(stream: str, of: str) -> cloudwatch.Metric:
    """Return how many requests Kinesis refused because they were too many. `of` is Read or Write."""
    name = f"{of}ProvisionedThroughputExceeded"
    return _metric("AWS/Kinesis", name, "Sum", 1, {"StreamName": stream})


def replication_metric(table: str | None) -> cloudwatch.MathExpression:
    """Return how many changes a table could not send to its stream; None: all tables of the account.

    A query also finds the metric's second dimension, DelegatedOperation.
    """
    which = "" if table is None else f" WHERE TableName = '{table}'"
    return _query(
        f'SELECT SUM(FailedToReplicateRecordCount) FROM "AWS/DynamoDB"{which}', "changes that are not sent"
    )


def writer_metric(cluster: str, name: str, statistic: str) -> cloudwatch.Metric:
    """Return a metric of the Aurora cluster's current writer."""
    return _metric("AWS/RDS", name, statistic, 1, {"DBClusterIdentifier": cluster, "Role": "WRITER"})


def instance_metric(instance: str, name: str, statistic: str) -> cloudwatch.Metric:
    """Return a metric of a database instance of Amazon RDS."""
    return _metric("AWS/RDS", name, statistic, 1, {"DBInstanceIdentifier": instance})


def source_metric(lake: str, source: str, name: str, statistic: str, minutes: int = 1) -> cloudwatch.Metric:
    """Return a metric of the lake's own, of one source."""
    return _metric(METRICS_NAMESPACE, name, statistic, minutes, {"Lake": lake, "Source": source})


def sink_lag_metric(connector: str) -> cloudwatch.MathExpression:
    """Return the lag of the topic with the most unread events. A query also finds topics of new tables."""
    query = f'SELECT MAX(SumOffsetLag) FROM "AWS/Kafka" WHERE "Consumer Group" = \'connect-{connector}\''
    return _query(query, "events behind")


def idle_metric(cluster: str) -> cloudwatch.MathExpression:
    """Return the idle time of the busiest broker, in percent."""
    query = (
        'SELECT MIN(CpuIdle) FROM SCHEMA("AWS/Kafka", "Broker ID", "Cluster Name") '
        f"WHERE \"Cluster Name\" = '{cluster}'"
    )
    return _query(query, "idle")


def disk_metric(cluster: str) -> cloudwatch.Metric:
    return _metric("AWS/Kafka", "KafkaDataLogsDiskUsed", "Maximum", 5, {"Cluster Name": cluster})


def build_failures_metric(project: str) -> cloudwatch.Metric:
    """Return how many runs of a CodeBuild project failed."""
    return _metric("AWS/CodeBuild", "FailedBuilds", "Sum", 5, {"ProjectName": project})


def dropped_starts_metric(schedule_group: str) -> cloudwatch.Metric:
    """Return how many starts EventBridge Scheduler gave up."""
    return _metric("AWS/Scheduler", "InvocationDroppedCount", "Sum", 5, {"ScheduleGroup": schedule_group})


def connectors(stack: TributaryStack) -> tuple[str, ...]:
    """Return the names of the deployed connectors. There are none if `[aws.connect].running` is false."""
    if not stack.aws.connect.running or not stack.lake.connected_sources:
        return ()
    lake = stack.lake
    return (
        *(lake.source_names(source).connector for source in lake.connected_sources),
        lake.names.bronze_connector,
    )


def _metric(
    namespace: str, name: str, statistic: str, minutes: int, dimensions: Mapping[str, str]
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        statistic=statistic,
        period=Duration.minutes(minutes),
        dimensions_map=dict(dimensions),
    )


def _query(text: str, label: str) -> cloudwatch.MathExpression:
    """Return a query in the language of CloudWatch Metrics Insights."""
    return cloudwatch.MathExpression(
        expression=text, using_metrics={}, label=label, period=Duration.minutes(5)
    )
