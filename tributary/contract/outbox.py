"""The outbox of a source: a table of events that an application writes, and its tables in the lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated

from pydantic import BeforeValidator

from tributary.contract.entries import Entry, Problem, as_tuple, matching
from tributary.contract.patterns import OWN_SCHEMA, TablePatterns

PAYLOAD = "payload"
"""The lake's column with the event. Debezium's router gives it this name."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
Column = Annotated[str, matching(_NAME, "a column's name, of letters, digits and underscores")]
Qualified = Annotated[
    str,
    matching(rf"{_NAME}\.{_NAME}", "schema.table, of letters, digits and underscores"),
]
Columns = Annotated[tuple[Column, ...], BeforeValidator(as_tuple)]


class Outbox(Entry):
    """`[source.NAME.outbox]`: Debezium's event router gives each type of event a topic and a lake table.

    table        `schema.table` with the events. It does not become a lake table itself
    lake_schema  the tables of the events are called `source.lake_schema.type`
    id           the column that identifies an event, and so the lake's row
    type         the column whose value names the topic and the lake table
    key          the column whose value becomes the key of the Kafka record
    payload      the column with the event
    columns      further columns that the lake's tables get
    """

    table: Qualified
    lake_schema: Column = "outbox"
    id: Column = "id"
    type: Column = "aggregatetype"
    key: Column = "aggregateid"
    payload: Column = PAYLOAD
    columns: Columns = ()

    @cached_property
    def schema_and_table(self) -> tuple[str, str]:
        schema, _, table = self.table.partition(".")
        return schema, table

    @property
    def lake_columns(self) -> tuple[str, ...]:
        """The columns of the lake's tables that come from columns of the same name."""
        return (self.id, self.type, self.key, *self.columns)

    def problems(self, entry: str, patterns: TablePatterns, event_format: str) -> Iterator[Problem]:
        """Yield what no single key shows. `entry` is the outbox's name in errors."""
        if not patterns.matches(*self.schema_and_table):
            expected = f"a table that the source takes: {', '.join(map(str, patterns.include))}"
            yield Problem(
                f"{entry}.table", "an outbox that the source does not take", json.dumps(self.table), expected
            )
        own = self.lake_schema == OWN_SCHEMA
        if own or any(pattern.may_match_in(self.lake_schema) for pattern in patterns.include):
            yield Problem(
                f"{entry}.lake_schema",
                "tables of events that could have the names of the source's own tables",
                json.dumps(self.lake_schema),
                "the name of a schema from which the source takes no table",
            )
        columns = [*self.lake_columns, PAYLOAD]
        if twice := sorted({column for column in columns if columns.count(column) > 1}):
            expected = f"different columns, of which only the payload is called {PAYLOAD}"
            yield Problem(entry, "two columns of the lake's tables with one name", ", ".join(twice), expected)
        if event_format != "json":
            expected = 'format = "json": the key of a routed event is a text, not a record of Avro'
            yield Problem(entry, "an outbox whose events are Avro", json.dumps(event_format), expected)
