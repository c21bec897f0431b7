"""The names that make up a table's Kafka topic, below the prefix of its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TopicForm:
    """The form of a source's topics: the same leading names for all, then schema and table.

    The engine chooses it. Debezium names PostgreSQL's topics by schema and table, MySQL's by database and
    table, SQL Server's by database, schema and table.

    leading  the names before the schema, which all topics share, such as a SQL Server database
    routed   the schema whose topics another than Debezium's naming strategy names. The name of a table below
             it stands in the topic as it is, without escapes. None: there is no such schema
    """

    leading: tuple[str, ...] = ()
    routed: str | None = None

    def names(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the names of the table's topic below the prefix."""
        return (*self.leading, schema, table)

    def table(self, names: Sequence[str]) -> tuple[str, str] | None:
        """Return schema and table of a topic with these names, or None if the topic has another form."""
        if len(names) != len(self.leading) + 2 or tuple(names[:-2]) != self.leading:
            return None
        return names[-2], names[-1]


SCHEMA_AND_TABLE = TopicForm()
