"""The events of the throughput benchmarks are a history that a table can have had, as Debezium tells it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from bench import events
from bench.events import COLUMNS, DENSE, SPARSE, Keys, Workload
from spark_app.wire.json_with_schemas import read_schema_version
from spark_app.wire.schema_version import SchemaTexts

PRELOADED = 1_000


def workload_of(keys: Keys) -> Workload:
    return Workload(2_000, PRELOADED, keys)


def told(spark: SparkSession, workload: Workload) -> list[Row]:
    return sorted(events.changes(spark, workload).collect(), key=lambda change: change["offset"])


@pytest.mark.parametrize("keys", [SPARSE, DENSE], ids=lambda keys: keys.name)
def test_no_change_is_of_a_row_that_is_not_there(spark: SparkSession, keys: Keys) -> None:
    there = set(range(PRELOADED))
    for change in told(spark, workload_of(keys)):
        assert (change["id"] in there) == (change["op"] != "c"), change
        (there.discard if change["op"] == "d" else there.add)(change["id"])


@pytest.mark.parametrize("keys", [SPARSE, DENSE], ids=lambda keys: keys.name)
def test_the_expected_rows_are_what_the_changes_leave_one_after_the_other(
    spark: SparkSession, keys: Keys
) -> None:
    workload = workload_of(keys)
    versions = {key: key - PRELOADED for key in range(PRELOADED)}
    for change in told(spark, workload):
        if change["op"] == "d":
            del versions[change["id"]]
        else:
            versions[change["id"]] = change["offset"]
    left = spark.createDataFrame(list(versions.items()), "id long, version long")
    rows = left.select(*events.row_columns(left["id"], left["version"], workload.seed))
    expected = events.expected_rows(spark, events.changes(spark, workload), workload)
    assert events.summary(expected) == events.summary(rows)


def test_the_shares_and_the_repetition_are_those_asked_for(spark: SparkSession) -> None:
    found = events.shape(events.changes(spark, workload_of(DENSE)))
    assert found.shares["r"] == pytest.approx(0.2, abs=0.001)
    for op, share in {"u": 0.5, "c": 0.2, "d": 0.1}.items():
        assert found.shares[op] == pytest.approx(share, abs=0.04), found
    assert found.events_per_key == pytest.approx(5, abs=0.5)


def test_reads_come_first_and_the_log_goes_on_from_event_to_event(spark: SparkSession) -> None:
    sent = payloads(spark)
    operations = [payload["op"] for payload in sent]
    assert operations == sorted(operations, key=lambda op: op != "r")
    places = [payload["source"]["lsn"] for payload in sent]
    assert all(before <= after for before, after in pairwise(places))
    for payload in sent:
        commit, place = json.loads(payload["source"]["sequence"])
        assert int(place) == payload["source"]["lsn"]
        assert commit is None or int(commit) < int(place)


def test_an_envelope_has_the_row_where_its_operation_has_one(spark: SparkSession) -> None:
    for payload in payloads(spark):
        is_delete = payload["op"] == "d"
        row, other = ("before", "after") if is_delete else ("after", "before")
        assert payload[other] is None
        assert list(payload[row]) == list(COLUMNS)


def test_the_schemas_describe_the_payload(spark: SparkSession) -> None:
    workload = workload_of(SPARSE)
    bare = events.envelopes(events.changes(spark, workload), workload)
    framed = events.with_schemas(bare).where("offset = 1000").collect()[0]
    version = read_schema_version(SchemaTexts(events.KEY_SCHEMA, events.VALUE_SCHEMA))
    assert [name for name, _ in version.row] == list(COLUMNS)
    assert [name for name, _ in version.key] == [events.KEY]
    plain = bare.where("offset = 1000").collect()[0]
    assert json.loads(framed["value"])["payload"] == json.loads(plain["value"])
    assert json.loads(framed["key"])["payload"] == json.loads(plain["key"])


def payloads(spark: SparkSession) -> list[Any]:
    workload = workload_of(DENSE)
    sent = events.envelopes(events.changes(spark, workload), workload).collect()
    return [json.loads(row["value"]) for row in sorted(sent, key=lambda row: row["offset"])]
