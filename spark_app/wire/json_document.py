"""An event's key and value as JSON documents: which schema each carries, and where its payload is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_app.jvm.schema_and_payload import schema_and_payload
from spark_app.wire.schema_version import SchemaTexts

VALUE, KEY = "value_document", "key_document"
"""The columns of an event's documents (`schema_and_payload`)."""


@dataclass(frozen=True)
class KnownSchemas:
    """The schemas by which documents are recognized without parsing them."""

    keys: tuple[str, ...]
    values: tuple[str, ...]

    @staticmethod
    def of(known: Iterable[SchemaTexts]) -> KnownSchemas:
        found = tuple(known)
        keys = dict.fromkeys(texts.key for texts in found if texts.key is not None)
        return KnownSchemas(tuple(keys), tuple(dict.fromkeys(texts.value for texts in found)))

    def documents(self) -> tuple[Column, Column]:
        """Return the columns `VALUE` and `KEY` of an `EVENT`."""
        return (
            schema_and_payload(F.col("value"), self.values).alias(VALUE),
            schema_and_payload(F.col("key"), self.keys).alias(KEY),
        )

    def has_value_schema(self, texts: SchemaTexts) -> Column:
        """Return whether an event's value carries the schema, which is one of these."""
        return _or_false(F.col(VALUE)["known"] == self.values.index(texts.value))

    def has_key_schema(self, texts: SchemaTexts) -> Column:
        """Return whether an event's key carries the schema, which is one of these; without one, whether the
        event has no key."""
        if texts.key is None:
            return F.col("key").isNull()
        return _or_false(F.col(KEY)["known"] == self.keys.index(texts.key))


def has_bare_key() -> Column:
    """Return whether the event's key is a JSON document without a schema."""
    return F.col(KEY).isNotNull() & F.col(KEY)["schema"].isNull()


def is_utf8(value: Column) -> Column:
    """Return whether bytes are text. Spark does not look when it makes a string of them."""
    return F.encode(value.cast("string"), "UTF-8") == value.cast("binary")


def is_json(value: Column) -> Column:
    """Return whether bytes, which are text, are JSON."""
    return F.get_json_object(value.cast("string"), "$").isNotNull()


def _or_false(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))
