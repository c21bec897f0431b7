"""All wire forms, and what they find together about an event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.sources.event import EVENT
from spark_app.wire.form import DeclaredForm, LearnedForm, VersionReading, WireForm
from spark_app.wire.json_document import KnownSchemas, is_json, is_utf8
from spark_app.wire.json_with_schemas import JsonWithSchemas
from spark_app.wire.json_without_schemas import JsonWithoutSchemas
from spark_app.wire.reasons import NO_SCHEMA, NOT_JSON, NOT_UTF8
from spark_app.wire.registry_avro import RegistryAvro
from spark_app.wire.schema_version import SchemaTexts, SchemaVersion
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events

FORMS: dict[str, WireForm] = {
    form.name: form for form in (JsonWithSchemas(), JsonWithoutSchemas(), RegistryAvro())
}
"""The forms by name. An event has at most one form."""

MOST_NEW_SCHEMAS = 100

SchemasOfForms = Mapping[str, Sequence[SchemaTexts]]
"""Schemas by the name of the form that writes them."""


def declared_versions(policy: TablePolicy, written: Events) -> tuple[SchemaVersion, ...]:
    """Return the versions of all forms that the lake file describes."""
    declared = (form.declared(policy, written) for form in FORMS.values() if isinstance(form, DeclaredForm))
    return tuple(version for versions in declared for version in versions)


def with_documents(events: DataFrame, known: SchemasOfForms) -> DataFrame:
    """Return the events, `EVENT`, with their documents (`json_document`)."""
    return events.select(*map(F.col, EVENT.fieldNames()), *documents(known))


def documents(known: SchemasOfForms) -> tuple[Column, Column]:
    """Return the columns of an event's documents, in which the known schemas are recognized."""
    return KnownSchemas.of(known.get(JsonWithSchemas.name, ())).documents()


def schemas_of(versions: Iterable[SchemaVersion]) -> SchemasOfForms:
    """Return the schemas that the events of the versions carry."""
    found = defaultdict(list)
    for version in versions:
        if version.texts is not None:
            found[version.form].append(version.texts)
    return found


def new_schemas(events: DataFrame, known: SchemasOfForms, *, has_registry: bool = False) -> DataFrame:
    """Return the schemas that events carry or name and that are not among the known ones of their form.

    `events` are `EVENT`. Columns: `form string, key string, value string, first_offset bigint, key_example
    binary, value_example binary`, at most `MOST_NEW_SCHEMAS` in the order of their first appearance. `key` is
    null if a record's key has no schema. The examples are of the first record.
    Schemas that events only name are among them if there is a registry. Reads every event."""
    found = F.coalesce(
        *[
            F.when(schema.isNotNull(), F.struct(F.lit(name).alias("form"), schema["key"], schema["value"]))
            for name, form in FORMS.items()
            if isinstance(form, LearnedForm) and (has_registry or not form.needs_registry)
            for schema in [form.new_schema(known.get(name, ()))]
        ]
    )
    return (
        with_documents(events.where(F.col("value").isNotNull()), known)
        .select("offset", found.alias("found"), F.struct("key", "value").alias("example"))
        .where(F.col("found").isNotNull())
        .groupBy("found.form", "found.key", "found.value")
        .agg(
            F.min("offset").alias("first_offset"),
            F.min_by("example", "offset").alias("example"),
            F.count("*").alias("events"),
        )
        # Damaged bytes can name any schema. Most events name one that exists.
        .orderBy(F.desc("events"), "first_offset")
        .limit(MOST_NEW_SCHEMAS)
        .orderBy("first_offset")
        .select(
            *("form", "key", "value", "first_offset"),
            F.col("example.key").alias("key_example"),
            F.col("example.value").alias("value_example"),
        )
    )


def learned_version(
    form: str, texts: SchemaTexts, policy: TablePolicy, written: Events, registry: SchemaRegistry | None
) -> SchemaVersion:
    """Return the version that a schema of `new_schemas` describes. Raises `UnreadableSchema`."""
    found = FORMS[form]
    assert isinstance(found, LearnedForm), "only a form that carries schemas has new ones"
    return found.learned(texts, policy, written, registry)


def opened(readings: Sequence[VersionReading]) -> Mapping[str, Column]:
    """Return the columns, by name, that all forms compute once for an event, before its payload is parsed."""
    return {
        name: column
        for form in FORMS.values()
        for name, column in form.opened(_of_form(form, readings)).items()
    }


def parsed(readings: Sequence[VersionReading]) -> Mapping[str, Column]:
    """Return the columns, by name, in which the payloads of the versions of all forms are parsed."""
    return {
        name: column
        for form in FORMS.values()
        for name, column in form.parsed(_of_form(form, readings)).items()
    }


def unread_reason(readings: Sequence[VersionReading]) -> Column:
    """Return why an event has none of the readable versions (`REASONS`)."""
    value = F.col("value")
    of_no_form = F.when(~is_utf8(value), NOT_UTF8).when(~is_json(value), NOT_JSON).otherwise(NO_SCHEMA)
    of_forms = [form.reason(_of_form(form, readings)) for form in FORMS.values()]
    return F.coalesce(*of_forms, of_no_form)


def _of_form(form: WireForm, readings: Sequence[VersionReading]) -> list[VersionReading]:
    return [reading for reading in readings if reading.version.form == form.name]
