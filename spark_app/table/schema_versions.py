"""The versions of a source table's schema that its events have shown so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame

from spark_app.wire.connect_schema import SchemaTexts, SchemaVersion, UnreadableSchema, read_schema_version
from spark_app.wire.declared_columns import declared_versions
from spark_app.wire.json_frame import schema_texts
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

REMEMBERED_VERSIONS = 8


@dataclass
class SchemaVersions:
    """Learns schemas from events. `written` says how a foreign connector writes them."""

    policy: TablePolicy
    written: Events
    learned: tuple[SchemaVersion, ...] = field(default=(), init=False)
    """What the events brought, oldest first."""
    _unreadable: tuple[SchemaTexts, ...] = field(default=(), init=False)

    @property
    def known(self) -> tuple[SchemaVersion, ...]:
        """The versions that the lake file declares, and those that were learned."""
        return (*self._declared, *self.learned)

    def learn(self, events: DataFrame) -> bool:
        """Read the schemas that the events bring; return whether one was new. One Spark job."""
        of_versions = (version.texts for version in self.learned if version.texts is not None)
        found: list[SchemaVersion] = []
        for row in schema_texts(events, (*of_versions, *self._unreadable)).collect():
            texts = SchemaTexts(row["key"], row["value"])
            try:
                found.append(read_schema_version(texts, self.policy.key, self.written.decimals))
            except UnreadableSchema:
                # Its events go to quarantine, with the text that could not be read.
                self._unreadable = (*self._unreadable, texts)[-REMEMBERED_VERSIONS:]
        self.learned = (*self.learned[-REMEMBERED_VERSIONS:], *found)
        return bool(found)

    @cached_property
    def _declared(self) -> tuple[SchemaVersion, ...]:
        if self.policy.columns is None:
            return ()
        key = self.policy.key or ()
        return declared_versions(self.policy.columns, key, self.written.decimals, self.written.times)
