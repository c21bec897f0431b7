"""Problems of a table's name and of its columns that all engines have in common."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from connectors.engines.engine import DatabaseNotReady, LeftOut
from connectors.engines.hidden_columns import hidden_column_problems
from connectors.engines.key_problems import ABSENT, no_such_column
from tributary.contract.column_names import ALLOWED_OF_SOURCES, is_source_column_name
from tributary.contract.lake import Lake
from tributary.contract.partitions import KeyPart
from tributary.contract.source import Source
from tributary.contract.table_name import TableName

NotReadyT = TypeVar("NotReadyT", bound=DatabaseNotReady)


def topic_problems(
    lake: Lake, source: Source, name: TableName, leave_out: str, error: type[NotReadyT]
) -> Iterator[NotReadyT]:
    """Yield why no topic can have the table's name, if none can."""
    if problem := lake.source_names(source).topic_problem(name.schema, name.table):
        yield error(
            "the table's name is too long",
            where=f"table {name}",
            found=problem,
            remedy=f"Rename the table, or {leave_out}.",
        )


def column_problems(
    lake: Lake,
    name: TableName,
    columns: Sequence[str],
    key: Collection[str],
    leave_out: str,
    error: type[NotReadyT],
    absent: str = ABSENT,
) -> Iterator[NotReadyT]:
    """Yield columns that a lake table cannot have, and entries of the lake file that name no column.

    columns  the columns that Debezium would send if the lake file hid none
    key      the columns that identify a row
    absent   what a column is that is not among them
    """
    policy = lake.policy(name)
    for column in columns:
        if not is_source_column_name(column) and column not in policy.hidden.left_out:
            yield error(
                "a lake table cannot have a column with this name",
                where=f"table {name}",
                found=repr(column),
                expected=ALLOWED_OF_SOURCES,
                remedy=f"Rename the column, leave it out with leave_out in [table.{json.dumps(str(name))}], "
                f"or {leave_out}.",
            )
    yield from _partition_problems(lake, name, columns, key, error, absent)
    yield from hidden_column_problems(name, policy, columns, key, error)


def _partition_problems(
    lake: Lake,
    name: TableName,
    columns: Sequence[str],
    key: Collection[str],
    error: type[NotReadyT],
    absent: str,
) -> Iterator[NotReadyT]:
    entry = f'[table."{name}"].partition_by'
    for partition in lake.policy(name).partitions:
        if partition.column not in columns:
            yield no_such_column(entry, partition.column, columns, error, absent)
        elif isinstance(partition, KeyPart) and key and partition.column not in key:
            yield error(
                "a part of a column that is not in the key",
                where=entry,
                found=str(partition),
                expected=f"a part of {' or '.join(sorted(key))}",
            )
        elif isinstance(partition, KeyPart) and partition.name in columns:
            yield error(
                "the table has a column with the name of the lake's partition column",
                where=entry,
                found=partition.name,
                remedy="Rename the column, or choose another part of the key.",
            )


def tables_with_untraceable_names(
    source: Source, tables: Iterable[tuple[str, str]], error: type[NotReadyT]
) -> Iterator[LeftOut]:
    """Yield the tables that only their names keep out of the source. `tables` are schemas and names."""
    for schema, table in tables:
        if not source.patterns.matches(schema, table) and source.patterns.would_match(schema, table):
            name = TableName(source.name, schema, table)
            problem = error(
                "Debezium cannot quote its name, or cannot turn it into a topic's name",
                where=f"table {name}",
                remedy="Rename the table, or leave it out with a pattern.",
            )
            yield LeftOut(name, (problem,))
