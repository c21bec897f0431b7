"""Reasons: why an event is put in quarantine."""

from __future__ import annotations

from spark_app.steps import payloads

NOT_UTF8, MISMATCH = payloads.NOT_UTF8, payloads.MISMATCH
NOT_JSON = "not_json"
NO_SCHEMA = "no_schema"
UNKNOWN_SCHEMA = "unknown_schema"
UNKNOWN_SHAPE = "unknown_shape"
UNKNOWN_OPERATION = "unknown_operation"
MISSING_KEY = "missing_key"
UNNAMED_COLUMN = "unnamed_column"
MISSING_ROW = "missing_row"
NOT_AVRO = "not_avro"
UNKNOWN_SCHEMA_ID = "unknown_schema_id"
OTHER_REGISTRY = "other_registry"
NO_REGISTRY = "no_registry"
NOT_AN_ITEM_CHANGE = "not_an_item_change"

REASONS = {
    NOT_UTF8: "The value is not UTF-8 text.",
    NOT_JSON: "The value is not JSON.",
    NO_SCHEMA: "The value or the key has no schema. If the connector sends none, name the table's key and "
    "columns in the lake file.",
    UNKNOWN_SCHEMA: "The schema of the event is of neither a Debezium envelope nor an unwrapped row.",
    UNKNOWN_SHAPE: "The value has no schema, and is neither a Debezium envelope nor an unwrapped row with "
    "__op or __deleted.",
    MISMATCH: "A value does not fit the schema that came with it, or a type of the lake.",
    UNKNOWN_OPERATION: "The operation is none of c, u, d, r and t.",
    MISSING_KEY: "The record has no key, so its row cannot be told from others. If the row has a key, name "
    "the table's key in the lake file.",
    UNNAMED_COLUMN: "The event has no schema, and its row has a column that the lake file does not name.",
    MISSING_ROW: "The event has no row, but its operation needs one.",
    NOT_AVRO: "The bytes after the schema's id are not Avro of that schema.",
    UNKNOWN_SCHEMA_ID: "The schema registry has no Avro schema with the id that the event names.",
    OTHER_REGISTRY: "The event names its schema in the way of another kind of registry than that of the "
    "lake file.",
    NO_REGISTRY: "The event looks like Avro whose schema is in a registry, and the lake file has no section "
    "[registry].",
    NOT_AN_ITEM_CHANGE: "The record is not a change of an item, as DynamoDB sends it to Kinesis.",
}
"""The code of each reason and its meaning."""
