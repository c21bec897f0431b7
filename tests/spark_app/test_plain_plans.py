"""Plain PySpark plans the reading of an event's operation once, however often its parts are used."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.sources.event import EVENT
from spark_app.wire.decode import undecodable
from spark_app.wire.sink_records import RecordsOfForms

_FIELDS = "spark.sql.debug.maxToStringFields"

pytestmark = pytest.mark.usefixtures("plainly")


def parsers_in_the_plan_of(rows: DataFrame) -> int:
    """Return how often the optimized plan reads JSON.

    Each shape of a payload takes one parser, and a line that may wrap a value one more."""
    configuration = rows.sparkSession.conf
    before = configuration.get(_FIELDS)
    configuration.set(_FIELDS, 10_000)
    try:
        return str(rows._jdf.queryExecution().optimizedPlan().toString()).count("from_json(")
    finally:
        configuration.set(_FIELDS, str(before))


def test_events_of_a_table_without_a_key_take_one_parser_for_each_shape(spark: SparkSession) -> None:
    assert parsers_in_the_plan_of(undecodable(spark.createDataFrame([], EVENT))) == 2


def test_records_of_files_take_one_parser_for_each_shape(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lines.json").write_text('{"op":"d"}\n')
    records = RecordsOfForms()
    lines = records.read_lines(spark.read, [str(tmp_path)], may_wrap_values=True)
    counted = records.described(lines).groupBy("file").agg(F.count_if("is_delete"))
    assert parsers_in_the_plan_of(counted) == 3
