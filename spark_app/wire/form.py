"""The interface of a wire form. Each form is a module that implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from pyspark.sql import Column
from pyspark.sql.types import StructType

from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.wire.payload_shapes import SHAPES, PayloadShape
from spark_app.wire.schema_version import SchemaTexts, SchemaVersion
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

KEY_COLUMN = "key"
"""The kind of a version's column with its parsed key (`VersionReading.name`)."""


@dataclass(frozen=True)
class VersionReading:
    """A version among those that decode a batch, and the types for parsing its payloads.

    number  its place among the versions
    value   the type of a value's payload
    key     the type of a key's payload: a struct of the key's columns
    """

    number: int
    version: SchemaVersion
    value: StructType
    key: StructType

    @property
    def shape(self) -> PayloadShape:
        return SHAPES[self.version.shape]

    def name(self, column: str) -> str:
        """Return the name of the version's own column of that kind."""
        return f"{column}_{self.number}"


class WireForm(Protocol):
    """A form in which the bytes of an event carry a change. It is a `LearnedForm` or a `DeclaredForm`.

    All columns refer to an `EVENT` with its documents (`json_document`). Each event's key and value are split
    into documents once for all forms, as far as they are JSON."""

    name: ClassVar[str]

    def opened(self, readings: Sequence[VersionReading], /) -> Mapping[str, Column]:
        """Return the columns, by name, that `parsed` uses beside those of an `EVENT` and its documents.

        Each is computed once for an event, however often `parsed` uses it."""

    def parsed(self, readings: Sequence[VersionReading]) -> Mapping[str, Column]:
        """Return the columns, by name, in which the payloads of this form's versions are parsed.

        If a version has its own key, the key is in `reading.name(KEY_COLUMN)`, as `read_payload` returns it.
        It is null if the event is of another version or its key is null."""

    def value(self, reading: VersionReading) -> Column:
        """Return the parsed value of an event of the version, null for any other event.

        The type is `struct<payload, problem string, has_unnamed boolean>` (`read_payload`)."""

    def reason(self, readings: Sequence[VersionReading]) -> Column:
        """Return why an event that looks like this form has none of the readable versions (`REASONS`).

        Null for an event of another form."""


@runtime_checkable
class LearnedForm(WireForm, Protocol):
    """A form whose events carry schemas, or name them, and from which versions are learned.

    needs_registry  the events only name their schemas"""

    needs_registry: ClassVar[bool]

    def new_schema(self, known: Sequence[SchemaTexts]) -> Column:
        """Return `struct<key string, value string>`: the schema that an event of this form carries.

        Null for a known schema and for events of other forms."""

    def learned(
        self, texts: SchemaTexts, policy: TablePolicy, written: Events, registry: SchemaRegistry | None, /
    ) -> SchemaVersion:
        """Return the version that a schema describes. `registry` has the schemas that events only name.

        The version of a schema that cannot be used is `refused`. Raises `UnreadableSchema`."""


@runtime_checkable
class DeclaredForm(WireForm, Protocol):
    """A form whose events carry no schema, so the lake file has to name their columns."""

    def declared(self, policy: TablePolicy, written: Events) -> tuple[SchemaVersion, ...]:
        """Return the versions that the lake file describes; none if it names no columns."""
