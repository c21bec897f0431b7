"""The tables of a lake, as far as anything has heard of them."""

from __future__ import annotations

from tributary.contract.item_stream import ITEM_SCHEMA
from tributary.contract.lake import Lake
from tributary.contract.patterns import WILDCARDS
from tributary.contract.table_name import TableName
from tributary.operations.item_tables import silver_tables
from tributary.operations.kafka_topics import read_table_names
from tributary.operations.sourced_lake import SourcedLake


def known_tables(sourced: SourcedLake) -> tuple[TableName, ...]:
    """Return the tables that have a topic, and the tables of items that the lake has or its file names."""
    lake = sourced.lake
    found = {*silver_tables(sourced.open_lake), *_named(lake)} if lake.item_sources else set()
    if lake.connected_sources:
        found |= {*read_table_names(sourced.kafka, lake)}
    return tuple(sorted(found))


def _named(lake: Lake) -> frozenset[TableName]:
    return frozenset(
        TableName(source.name, ITEM_SCHEMA, pattern.table)
        for source in lake.item_sources
        for pattern in source.patterns.include
        if not any(wildcard in pattern.table for wildcard in WILDCARDS)
    )
