"""The interface through which a table reads the events of its topic, whatever their form."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame

from spark_app.columns.table_columns import TableColumns


class Schemas(Protocol):
    """Learns what the events of one table hold, and turns them into changes with that knowledge."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is known yet."""

    @property
    def names_keys_apart(self) -> bool:
        """Return whether each event has a key besides its row, which headers mark if the key changes."""

    def learn(self, events: DataFrame) -> bool:
        """Learn from events (`EVENT`); return whether something was new. One Spark job."""

    def columns(self, current: TableColumns | None) -> TableColumns | None:
        """Return the columns for the table's rows and all events; None if no key is known.

        `current` are the table's columns. Raises `SchemaConflict`, `UnsupportedType`."""

    def columns_anew(self) -> TableColumns | None:
        """Do the same for a table that is rebuilt, and so has no types to keep."""

    def decode(self, events: DataFrame, columns: TableColumns) -> DataFrame:
        """Return the changes that events tell of (`decode.change_type(columns)`).

        An event of which something has to be learned first gets the reason `unknown_schema`."""

    def undecodable(self, events: DataFrame) -> DataFrame:
        """Return why events cannot be decoded while no table's key is known.

        Columns: `topic, partition, offset, reason`. An event without a reason does no harm."""
