"""A wire form is its module and one line in the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.table.table_ingest import TableIngest
from spark_app.wire import decode, forms
from spark_app.wire.form import DeclaredForm, LearnedForm
from spark_app.wire.reasons import REASONS
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tests.spark_app.numbered_schemas import MARK, NumberedSchemas, framed
from tests.spark_app.test_recorded_events import apply_all
from tributary.contract.lake import TablePolicy


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, str]]:
    """The schemas of a form that is known for as long as the test lasts."""
    schemas: dict[int, str] = {}
    monkeypatch.setitem(forms.FORMS, NumberedSchemas.name, NumberedSchemas(schemas))
    decode._projections.cache_clear()
    yield schemas
    decode._projections.cache_clear()


def test_every_form_has_its_name_and_one_way_to_its_versions() -> None:
    for name, form in forms.FORMS.items():
        assert form.name == name
        assert isinstance(form, LearnedForm) != isinstance(form, DeclaredForm)


def test_a_form_with_a_line_in_the_registry_is_read_beside_the_others(
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
    )

    apply_all(table, 1000)

    found = {row["id"]: (row["name"], row["body"]) for row in table.hudi.read().collect()}
    assert found == {key: (row["name"], row["body"]) for key, row in things.rows.items()}
    (aside,) = spark.read.parquet(f"{table.quarantine_path}/*").collect()
    assert (bytes(aside["value"])[:1], aside["reason"]) == (MARK, "unknown_schema")


def test_each_reason_has_its_code_and_a_sentence() -> None:
    for code, sentence in REASONS.items():
        assert code == code.lower()
        assert sentence.endswith(".")
