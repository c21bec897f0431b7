"""Alarms and graphs of the lake's Aurora MySQL clusters: their binary logs, and their disks."""

from __future__ import annotations

from stacks.base import TributaryStack
from stacks.database.aurora import disk_alarm
from stacks.database.own_server import own_servers
from stacks.metrics import writer_metric
from stacks.watched import Graph, Watched
from tributary.contract.engines.mysql import MySqlSource

SECTIONS = ("database-disk",)
"""The runbook's sections that the alarms lead to."""


def watched(stack: TributaryStack) -> list[Watched]:
    """Return what to watch of each cluster. The log ends by itself, after `binlog_kept`."""
    return [
        alarm
        for source, cluster in own_servers(stack, MySqlSource).items()
        for alarm in disk_alarm(stack.aws.mysql, source, cluster)
    ]


def graphs(stack: TributaryStack) -> list[Graph]:
    """Return what the dashboard shows of the clusters."""
    clusters = own_servers(stack, MySqlSource)
    if not clusters:
        return []
    sizes = [
        writer_metric(cluster, "SumBinaryLogSize", "Maximum").with_(label=source)
        for source, cluster in clusters.items()
    ]
    return [Graph("The databases' binary logs (bytes)", tuple(sizes))]
