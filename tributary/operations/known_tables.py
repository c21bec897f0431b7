"""The tables of a lake on this machine, as far as anything has heard of them."""

from __future__ import annotations

from tributary.contract.item_stream import ITEM_SCHEMA
from tributary.contract.lake import Lake
from tributary.contract.patterns import WILDCARDS
from tributary.contract.table_name import TableName
from tributary.operations.kafka_topics import read_table_names
from tributary.operations.table_lag import silver_tables
from tributary.operations.workspace import Workspace


def known_tables(workspace: Workspace) -> tuple[TableName, ...]:
    """Return the tables that have a topic, and the tables of items that the lake has or its file names."""
    lake = workspace.lake
    found = {*silver_tables(workspace.files, lake), *_named(lake)} if lake.item_sources else set()
    if lake.connected_sources:
        workspace.require("kafka")
        found |= {*read_table_names(workspace.kafka, lake)}
    return tuple(sorted(found))


def _named(lake: Lake) -> frozenset[TableName]:
    return frozenset(
        TableName(source.name, ITEM_SCHEMA, pattern.table)
        for source in lake.item_sources
        for pattern in source.patterns.include
        if not any(wildcard in pattern.table for wildcard in WILDCARDS)
    )
