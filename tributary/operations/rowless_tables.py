"""The tables of the sources that the lake takes, and that have never had a row: no event says their types."""

from __future__ import annotations

from tributary.api.tables import UnknownTable, read_table_folders, spellings
from tributary.contract.table_name import TableName
from tributary.local.running import PipelineDown
from tributary.operations.kafka_topics import KafkaUnreachable
from tributary.operations.known_tables import known_tables
from tributary.operations.snapshots.keeper import record_files
from tributary.operations.sourced_lake import SourcedLake


def rowless_tables(lake: SourcedLake) -> tuple[TableName, ...]:
    """Return the tables that the last looks have met, and that neither Kafka nor the lake has, by name.

    If Kafka does not answer, nobody knows, and no table is returned. Raises PipelineDown if S3 is away."""
    files = record_files(lake)
    looks = [files.read_look(source.name) for source in lake.lake.connected_sources]
    taken = {table for look in looks if look is not None for table in look.tables}
    if not taken:
        return ()
    try:
        has_events = known_tables(lake)
    except (PipelineDown, KafkaUnreachable):
        return ()
    folders = read_table_folders(files.filesystem, files.names, lake.open_lake.silver)
    return tuple(sorted(taken - {place.name for place in folders} - {*has_events}))


class NoRowYet(UnknownTable):
    """A table of the source that the lake gets with its first row."""


def as_rowless(lake: SourcedLake, error: UnknownTable) -> UnknownTable:
    """Return the error of a table that the lake does not have, or that of one without a row.

    Raises PipelineDown."""
    for table in rowless_tables(lake):
        if error.name in spellings(table):
            return NoRowYet(
                f"The lake has no table {error.name!r} yet",
                found=f"{table} has not had a row",
                remedy="The lake gets the table with its first row, which also brings its columns and types.",
            )
    return error
