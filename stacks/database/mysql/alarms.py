"""Alarms and graphs of the lake's Aurora MySQL clusters: their binary logs, and their disks."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.base import TributaryStack
from stacks.database.aurora import cluster_name, disk_alarm
from stacks.observability.metrics import writer_metric
from stacks.observability.watched import Graph, Watched
from tributary.contract.engines.mysql import MySqlSource

SECTIONS = ("database-disk",)
"""The runbook's sections that the alarms lead to."""


def watched(stack: TributaryStack) -> list[Watched]:
    """Return what to watch of each cluster. The log ends by itself, after `binlog_kept`."""
    return [
        alarm
        for source, cluster in _clusters(stack).items()
        for alarm in disk_alarm(stack.aws.mysql, source, cluster)
    ]


def graphs(stack: TributaryStack) -> list[Graph]:
    """Return what the dashboard shows of the clusters."""
    clusters = _clusters(stack)
    if not clusters:
        return []
    sizes = [
        writer_metric(cluster, "SumBinaryLogSize", "Maximum").with_(label=source)
        for source, cluster in clusters.items()
    ]
    return [Graph("The databases' binary logs (bytes)", tuple(sizes))]


def _clusters(stack: TributaryStack) -> Mapping[str, str]:
    """Return the identifiers of the lake's own clusters, by their sources."""
    return {
        source.name: cluster_name(stack, source)
        for source in stack.lake.connected_sources
        if isinstance(source, MySqlSource) and source.name not in stack.aws.source
    }
