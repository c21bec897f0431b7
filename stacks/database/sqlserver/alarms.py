"""Alarms and graphs of the lake's SQL Servers: what CDC records, their storage, and their processors."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch

from stacks.base import TributaryStack
from stacks.database.own_server import own_servers
from stacks.functions.sqlserver_bootstrap.main import AGE, UNRECORDED
from stacks.metrics import instance_metric, source_metric
from stacks.watched import Graph, Threshold, Watched
from tributary.contract.engines.sqlserver import RdsSqlServer, SqlServerSource

SECTIONS = ("capture-stopped", "table-not-captured", "database-storage", "database-cpu")
"""The runbook's sections that the alarms lead to."""

_GIB = 1024**3
_LEAST_FREE = 0.1
"""Amazon RDS enlarges a volume when a tenth of it is free."""
_MOST_CPU_PERCENT = 90
_LONGEST_SILENCE_SECONDS = 15 * 60
"""The capture job records a place of the log every five minutes, even if nothing changes."""


def watched(stack: TributaryStack) -> list[Watched]:
    """Return what to watch of each instance."""
    aws, lake, found = stack.aws, stack.lake.name, []
    free = _free(aws.sqlserver)
    busy = Threshold(_MOST_CPU_PERCENT, points=15, of=15)
    for source, instance in own_servers(stack, SqlServerSource).items():
        found += [
            Watched(
                "capture-stopped",
                f"SQL Server records no changes of {source}, or nobody can look.",
                source_metric(lake, source, AGE, "Maximum"),
                Threshold(_LONGEST_SILENCE_SECONDS, points=10, of=15),
                source,
                # The function that looks cannot reach the database, or it fails.
                missing=cloudwatch.TreatMissingData.BREACHING,
            ),
            Watched(
                "table-not-captured",
                f"SQL Server does not record a table of {source} as it is now.",
                source_metric(lake, source, UNRECORDED, "Minimum"),
                Threshold(0, points=5, of=5),
                source,
            ),
            Watched(
                "database-storage",
                f"The database of {source} has little storage left.",
                instance_metric(instance, "FreeStorageSpace", "Minimum"),
                free,
                source,
            ),
            Watched(
                "database-cpu",
                f"The database of {source} has much to do.",
                instance_metric(instance, "CPUUtilization", "Average"),
                busy,
                source,
            ),
        ]
    return found


def _free(storage: RdsSqlServer) -> Threshold:
    """Return when too little storage is free."""
    # CloudWatch has no metric of a volume's size. With a higher limit, the alarm would ring on a new volume
    # before Amazon RDS enlarges it. Later, the volume has a tenth of its larger size free at least, until it
    # is as large as `storage_max_gb` allows. Amazon RDS waits five minutes, and then needs some to enlarge.
    grows = storage.storage_max_gb > storage.storage_gb
    points, of = (15, 20) if grows else (3, 5)
    return Threshold(storage.storage_gb * _GIB * _LEAST_FREE, is_least=True, points=points, of=of)


def graphs(stack: TributaryStack) -> list[Graph]:
    """Return what the dashboard shows of the instances."""
    servers, lake = own_servers(stack, SqlServerSource), stack.lake.name
    if not servers:
        return []
    of_instances = (
        ("The SQL Servers' free storage (bytes)", "FreeStorageSpace", "Minimum"),
        ("The SQL Servers' processors (%)", "CPUUtilization", "Average"),
    )
    ages = [source_metric(lake, source, AGE, "Maximum").with_(label=source) for source in servers]
    return [
        Graph("Seconds since SQL Server recorded anything", tuple(ages)),
        *(
            Graph(
                title,
                tuple(
                    instance_metric(instance, name, statistic).with_(label=source)
                    for source, instance in servers.items()
                ),
            )
            for title, name, statistic in of_instances
        ),
    ]
