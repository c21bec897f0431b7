"""The definitions of a database's tables, as Debezium knows them: from their capture instances."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.engines.definitions import ColumnDefinition, TableDefinition
from connectors.engines.sqlserver.catalog import TableFacts
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.table_name import TableName


def definitions_of(source: SqlServerSource, tables: Sequence[TableFacts]) -> dict[TableName, TableDefinition]:
    """Return the definitions of all tables that match the source's patterns.

    A table's definition is that of its newest capture instance, because Debezium knows only that.
    Until an instance fits a changed table, Debezium reads values by the old definition, and does not send
    those of a new column. And between two instances of which the first is gone, changes are lost. So a new
    instance means that all rows have to be read again."""
    return {
        TableName(source.name, facts.schema, facts.table): _definition(facts)
        for facts in tables
        if source.matches(facts.schema, facts.table)
    }


def _definition(facts: TableFacts) -> TableDefinition:
    newest = facts.captures.newest if facts.captures is not None else None
    instance = "none" if newest is None else f"{newest.name}, {newest.change_table}"
    recorded = () if newest is None else newest.columns
    return TableDefinition(
        identity=str(facts.number),
        files=f"capture instance {instance}",
        columns=tuple(
            ColumnDefinition(column.name, str(column.number), instance)
            for column in facts.columns
            if column.name in recorded
        ),
    )
