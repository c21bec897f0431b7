"""The versions of a source table's schema that its events have shown so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame

from spark_app.wire.connect_schema import UnreadableSchema
from spark_app.wire.forms import declared_versions, learned_version, new_schemas, schemas_of
from spark_app.wire.schema_version import SchemaTexts, SchemaVersion
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
    _unreadable: tuple[SchemaVersion, ...] = field(default=(), init=False)
    """Versions whose schema could not be read, and whose columns are so not known."""

    @property
    def known(self) -> tuple[SchemaVersion, ...]:
        """The versions that the lake file declares, and those that were learned."""
        return (*self._declared, *self.learned)

    def learn(self, events: DataFrame) -> bool:
        """Read the schemas that the events bring; return whether one was new. One Spark job."""
        found: list[SchemaVersion] = []
        seen = schemas_of((*self.learned, *self._unreadable))
        for row in new_schemas(events, seen).collect():
            form, texts = row["form"], SchemaTexts(row["key"], row["value"])
            try:
                found.append(learned_version(form, texts, self.policy, self.written))
            except UnreadableSchema:
                # Its events go to quarantine, with the text that could not be read.
                unreadable = SchemaVersion(form, texts, key=(), row=())
                self._unreadable = (*self._unreadable, unreadable)[-REMEMBERED_VERSIONS:]
        self.learned = (*self.learned[-REMEMBERED_VERSIONS:], *found)
        return bool(found)

    @cached_property
    def _declared(self) -> tuple[SchemaVersion, ...]:
        return declared_versions(self.policy, self.written)
