"""The tables of items that a lake holds."""

from __future__ import annotations

from collections.abc import Mapping

from tributary.api.open_lake import OpenLake
from tributary.api.tables import LakeTable, read_silver_tables
from tributary.contract.table_name import TableName


def silver_tables(opened: OpenLake) -> Mapping[TableName, LakeTable]:
    """Return the lake's tables of items, by name."""
    sources = {source.name for source in opened.lake.item_sources}
    if not sources:
        return {}
    places = read_silver_tables(opened.files.filesystem, opened.lake.names, opened.silver)
    return {place.name: place for place in places if place.name.source in sources}
