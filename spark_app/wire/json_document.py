"""An event's key and value as JSON documents: the schema that each carries, and the place of its payload."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_app.steps.steps import steps
from spark_app.wire.schema_version import SchemaTexts

VALUE, KEY = "value_document", "key_document"
"""The columns with an event's documents (`Steps.schema_and_payload`)."""


@dataclass(frozen=True)
class KnownSchemas:
    """The schemas by which documents are recognized without parsing the schema."""

    keys: tuple[str, ...]
    values: tuple[str, ...]
    key_examples: tuple[bytes, ...] = ()
    value_examples: tuple[bytes, ...] = ()

    @staticmethod
    def of(known: Iterable[SchemaTexts]) -> KnownSchemas:
        found = tuple(known)
        keys = dict.fromkeys(texts.key for texts in found if texts.key is not None)
        return KnownSchemas(
            tuple(keys),
            tuple(dict.fromkeys(texts.value for texts in found)),
            tuple(texts.key_example for texts in found if texts.key_example is not None),
            tuple(texts.value_example for texts in found if texts.value_example is not None),
        )

    def documents(self) -> tuple[Column, Column]:
        """Return the columns `VALUE` and `KEY` of an `EVENT`."""
        return (
            steps().schema_and_payload(F.col("value"), self.values, self.value_examples).alias(VALUE),
            steps().schema_and_payload(F.col("key"), self.keys, self.key_examples).alias(KEY),
        )

    def has_value_schema(self, texts: SchemaTexts) -> Column:
        """Return whether an event's value carries the schema, which is one of the known ones."""
        return _or_false(F.col(VALUE)["known"] == self.values.index(texts.value))

    def has_key_schema(self, texts: SchemaTexts) -> Column:
        """Return whether an event's key carries the schema, which is one of the known ones.

        For a schema without a key, return whether the event has no key."""
        if texts.key is None:
            return F.col("key").isNull()
        return _or_false(F.col(KEY)["known"] == self.keys.index(texts.key))


def has_bare_key() -> Column:
    """Return whether the event's key is a JSON document without a schema."""
    return F.col(KEY).isNotNull() & F.col(KEY)["schema"].isNull()


def is_utf8(value: Column) -> Column:
    """Return whether bytes are text. Spark does not check this when it casts them to a string."""
    return F.encode(value.cast("string"), "UTF-8") == value.cast("binary")


def is_json(value: Column) -> Column:
    """Return whether bytes are JSON. The bytes must be text."""
    return F.get_json_object(value.cast("string"), "$").isNotNull()


def _or_false(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))
