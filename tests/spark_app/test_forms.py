"""A wire form is its module and one line in the registry, and says why it cannot read an event."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.table.table_ingest import TableIngest
from spark_app.wire import decode, forms
from spark_app.wire.form import DeclaredForm, LearnedForm
from spark_app.wire.topic_form import TopicForm
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.decoded import decoded
from tests.spark_app.memory_source import MemorySource
from tests.spark_app.numbered_schemas import MARK, NumberedSchemas, framed
from tests.spark_app.test_recorded_events import apply_all
from tributary.contract.lake import TablePolicy


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, str]]:
    """The schemas of a form that is registered only during the test."""
    schemas: dict[int, str] = {}
    monkeypatch.setitem(forms.FORMS, NumberedSchemas.name, NumberedSchemas(schemas))
    decode._projections.cache_clear()
    yield schemas
    decode._projections.cache_clear()


def test_every_form_has_its_name_and_one_way_to_its_versions() -> None:
    for name, form in forms.FORMS.items():
        assert form.name == name
        assert isinstance(form, LearnedForm) != isinstance(form, DeclaredForm)


def test_a_form_with_a_line_in_the_registry_is_read_like_the_others(
    spark: SparkSession, tmp_path: Path, registry: dict[int, str]
) -> None:
    things = SourceTable()
    for number in range(2):
        things.begin()
        things.insert(10 * number + 1, "framed", "large")
        things.insert(10 * number + 2, "framed", None)
        things.commit()
        things.add_column("more", "int")
    things.begin()
    things.update(1, "as json", "large", body_is_unchanged=True)
    things.delete(2)
    things.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(things.events)]
    for offset, event in enumerate(things.events[:4]):
        document = json.loads(event.value or b"")
        registry[offset // 2] = json.dumps(document["schema"])
        value = framed(offset // 2, json.dumps(document["payload"]).encode())
        rows[offset] = (*rows[offset][:4], None, bytearray(value), None, None)
    unknown = [(*rows[0][:2], len(rows), rows[0][3], None, bytearray(framed(99, b"{}")), None, None)]
    table = TableIngest(
        name=TOPIC,
        topic=TOPIC,
        source=MemorySource(spark, rows + unknown),
        hudi=HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(key=("id",))),
        quarantine_path=str(tmp_path / "quarantine"),
        form=TopicForm(PostgresLog()),
    )

    apply_all(table, 1000)

    found = {row["id"]: (row["name"], row["body"]) for row in table.hudi.read().collect()}
    assert found == {key: (row["name"], row["body"]) for key, row in things.rows.items()}
    (aside,) = spark.read.parquet(f"{table.quarantine_path}/*").collect()
    assert (bytes(aside["value"])[:1], aside["reason"]) == (MARK, "unknown_schema")


FIELDS = [{"type": "int64", "field": "id"}]
KEY_SCHEMA = {"type": "struct", "fields": FIELDS}
ROW = {"type": "struct", "optional": True, "field": "after", "fields": FIELDS}
VALUE_SCHEMA = {"type": "struct", "fields": [ROW, {"type": "string", "field": "op"}]}
NO_ENVELOPE = {"type": "struct", "fields": [{"type": "string", "field": "op"}]}
KEY = json.dumps({"schema": KEY_SCHEMA, "payload": {"id": 1}}).encode()
CREATED = {"after": {"id": 1}, "op": "c"}


def with_schema(payload: object, schema: object = VALUE_SCHEMA) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


WITH_SCHEMAS = [
    (KEY, with_schema(CREATED), None),
    (KEY, b"\x80", "not_utf8"),
    (KEY, b"text", "not_json"),
    (KEY, b"5", "no_schema"),
    (KEY, b'{"after":{"id":1},"op":"c"}', "no_schema"),
    (KEY, b'{"payload":{"after":{"id":1},"op":"c"}}', "no_schema"),
    (KEY, with_schema(CREATED)[:-1], "mismatch"),
    (KEY, with_schema(CREATED)[:-2], "not_json"),
    (KEY, with_schema(CREATED, NO_ENVELOPE), "unknown_schema"),
    (KEY, with_schema(None), "mismatch"),
    (KEY, with_schema([]), "mismatch"),
    (KEY, with_schema({"after": None, "op": "c"}), "missing_row"),
    (KEY, with_schema({"after": {"id": 1}, "op": "x"}), "unknown_operation"),
    (None, with_schema(CREATED), "missing_key"),
    (with_schema(None, KEY_SCHEMA), with_schema(CREATED), "missing_key"),
    (b'{"id":1}', with_schema(CREATED), "no_schema"),
    (b"1", with_schema(CREATED), "no_schema"),
]
WITHOUT_SCHEMAS = [
    (None, b'{"after":{"id":1},"op":"c"}', None),
    (b"any", b' {"payload" : {"id":1,"__op":"c"}}', None),
    (None, b'{"id":2,"op":"c","after":"d","__op":"c"}', "unnamed_column"),
    (None, b'{"op":"c","after":{"id":1,"more":2}}', "unnamed_column"),
    (None, b'{"id":1}', "unknown_shape"),
    (None, b'{"payload":null}', "unknown_shape"),
    (None, b'{"after":{"id":1},"op":"c"', "not_json"),
    (None, b'{"after":{"id":1},"op":"c","\xff":1}', "not_utf8"),
    (None, b'{"after":{"id":"one"},"op":"c"}', "mismatch"),
    (None, b'{"after":{"id":1},"before":null}', "unknown_operation"),
    (None, b"text", "not_json"),
]


@pytest.mark.parametrize(
    ("sent", "policy"),
    [
        (WITH_SCHEMAS, TablePolicy()),
        (WITHOUT_SCHEMAS, TablePolicy.model_validate({"key": ("id",), "columns": {"id": "bigint"}})),
    ],
    ids=["with schemas", "without schemas"],
)
def test_an_event_that_cannot_be_read_has_the_reason_that_its_form_gives(
    spark: SparkSession, sent: Sequence[tuple[bytes | None, bytes, str | None]], policy: TablePolicy
) -> None:
    _, changes = decoded(spark, TOPIC, [(key, value) for key, value, _ in sent], policy)

    found = changes.orderBy("offset").collect()

    reasons = [(key, value, change["reason"]) for (key, value, _), change in zip(sent, found, strict=True)]
    assert reasons == sent
