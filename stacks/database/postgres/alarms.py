"""Alarms and graphs of the lake's Aurora PostgreSQL clusters: the log they hold back, and their disks."""

from __future__ import annotations

from stacks.base import TributaryStack
from stacks.database.aurora import disk_alarm
from stacks.database.own_server import own_servers
from stacks.metrics import writer_metric
from stacks.watched import Graph, Threshold, Watched
from tributary.contract.engines.postgres import PostgresSource

SECTIONS = ("slot-lag", "database-disk")
"""The runbook's sections that the alarms lead to."""

_GB = 1_000_000_000
_WAL_PERCENT = 80
"""The part of `slot_wal_gb` at which to raise the alarm: beyond all of it PostgreSQL gives the slot up."""


def watched(stack: TributaryStack) -> list[Watched]:
    """Return what to watch of each cluster."""
    aws, found = stack.aws, []
    for source, cluster in own_servers(stack, PostgresSource).items():
        slot_lag = Threshold(aws.alarms.slot_lag_gb * _GB)
        wal = Threshold(aws.database.slot_wal_gb * _GB * _WAL_PERCENT / 100)
        lag = writer_metric(cluster, "OldestReplicationSlotLag", "Maximum")
        held = writer_metric(cluster, "TransactionLogsDiskUsage", "Maximum")
        found += [
            Watched("slot-lag", f"Debezium of {source} is far behind the database.", lag, slot_lag, source),
            Watched("database-disk", f"The log of {source} is nearly cut off.", held, wal, f"{source}-log"),
        ]
        found += disk_alarm(aws.database, source, cluster)
    return found


def graphs(stack: TributaryStack) -> list[Graph]:
    """Return what the dashboard shows of the clusters."""
    clusters = own_servers(stack, PostgresSource)
    if not clusters:
        return []
    lags = [
        writer_metric(cluster, "OldestReplicationSlotLag", "Maximum").with_(label=source)
        for source, cluster in clusters.items()
    ]
    return [Graph("What the databases hold back (bytes)", tuple(lags))]
