"""Which names a table's Kafka topic consists of, below the prefix of its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TopicForm:
    """The form of a source's topics: the same leading names in all of them, then schema and table.

    An engine chooses it. Debezium names PostgreSQL's topics by schema and table, MySQL's by database and
    table, SQL Server's by database, schema and table.

    leading  what every topic of the source has before the schema, such as the name of a SQL Server database
    """

    leading: tuple[str, ...] = ()

    def names(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the names that the table's topic has below the prefix."""
        return (*self.leading, schema, table)

    def table(self, names: Sequence[str]) -> tuple[str, str] | None:
        """Return schema and table of a topic with these names, or None if it has another form."""
        if len(names) != len(self.leading) + 2 or tuple(names[:-2]) != self.leading:
            return None
        return names[-2], names[-1]


SCHEMA_AND_TABLE = TopicForm()
