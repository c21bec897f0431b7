"""The versions of a source table's schema that its events have brought so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame

from spark_app.columns.table_columns import TableColumns, merge, merge_anew
from spark_app.positions.source_log import SourceLog
from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.wire.connect_schema import UnreadableSchema
from spark_app.wire.decode import decode, undecodable
from spark_app.wire.forms import declared_versions, learned_version, new_schemas, schemas_of
from spark_app.wire.registry_avro import NOT_LOOKED_FOR
from spark_app.wire.schema_version import SchemaTexts, SchemaVersion, columns_of
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

REMEMBERED_VERSIONS = 8
MOST_REFUSED = 1_000
REFUSED_FOR_SECONDS = 30.0
"""After this time, a registry is asked again for a schema that it did not have."""


@dataclass
class SchemaVersions:
    """Learns schemas from Debezium's events (`wire.schemas.Schemas`).

    written   how a foreign connector writes them
    log       how the engine of their source gives positions
    registry  has the schemas that events only name; None: the lake has no registry
    """

    policy: TablePolicy
    written: Events
    log: SourceLog
    registry: SchemaRegistry | None = None
    learned: tuple[SchemaVersion, ...] = field(default=(), init=False)
    """The versions that the events brought, oldest first."""
    _unreadable: tuple[SchemaVersion, ...] = field(default=(), init=False)
    """Versions whose schema could not be read, so their columns are unknown."""
    _refused: dict[SchemaVersion, float] = field(default_factory=dict, init=False)
    """Versions whose events cannot be read, and when that was found."""

    @property
    def known(self) -> tuple[SchemaVersion, ...]:
        """The versions that the lake file declares, and the learned ones."""
        return (*self._declared, *self.learned)

    @property
    def refused(self) -> tuple[SchemaVersion, ...]:
        """The versions of which it was found lately that their events cannot be read, and why."""
        if self.registry is None:
            return (NOT_LOOKED_FOR,)
        now = time.monotonic()
        lately = {each: at for each, at in self._refused.items() if now - at < REFUSED_FOR_SECONDS}
        self._refused = dict(list(lately.items())[-MOST_REFUSED:])
        return tuple(self._refused)

    def learn(self, events: DataFrame) -> bool:
        """Read the schemas that the events bring; return whether one was new. One Spark job.

        Raises `RegistryAway` or `RegistryRefused` if the registry does not give the schemas."""
        found: list[SchemaVersion] = []
        seen = schemas_of((*self.learned, *self._unreadable, *self.refused))
        has_registry = self.registry is not None
        for row in new_schemas(events, seen, has_registry=has_registry).collect():
            form, examples = row["form"], (_bytes(row["key_example"]), _bytes(row["value_example"]))
            texts = SchemaTexts(row["key"], row["value"], *examples)
            try:
                found.append(learned_version(form, texts, self.policy, self.written, self.registry))
            except UnreadableSchema:
                # The version's events go to quarantine, with the text that could not be read.
                unreadable = SchemaVersion(form, texts, key=(), row=())
                self._unreadable = (*self._unreadable, unreadable)[-REMEMBERED_VERSIONS:]
        readable = [version for version in found if version.refused is None]
        self.learned = (*self.learned[-REMEMBERED_VERSIONS:], *readable)
        now = time.monotonic()
        self._refused |= {version: now for version in found if version.refused is not None}
        return bool(found)

    @property
    def is_empty(self) -> bool:
        return not self.known

    @property
    def names_keys_apart(self) -> bool:
        return all(version.has_own_key for version in self.known)

    def columns(self, current: TableColumns | None) -> TableColumns | None:
        return merge(current, [columns_of(version) for version in self.known])

    def columns_anew(self) -> TableColumns | None:
        return merge_anew(columns_of(version) for version in self.known)

    def decode(self, events: DataFrame, columns: TableColumns) -> DataFrame:
        return decode(events, (*self.known, *self.refused), columns, self.log)

    def undecodable(self, events: DataFrame) -> DataFrame:
        return undecodable(events, self.refused)

    @cached_property
    def _declared(self) -> tuple[SchemaVersion, ...]:
        return declared_versions(self.policy, self.written)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
