"""Keys to erase come from a file or an object, and neither they nor an error are in the output or a log."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.reports import ProgressWriter, Started
from spark_app.run.erasure_files import ErasureFailed, ErasureFiles, KeysUnreadable
from spark_app.run.outcome_files import OutcomeFiles
from spark_app.run.table_task import run_for_each_table
from spark_app.sources.event import OffsetRange
from spark_app.table.connector_keys import ConnectorKeyEvents
from spark_app.table.erase import erase_keys
from spark_app.table.table_ingest import TableIngest
from tests.faults.lake_on_s3 import BUCKET, Storage, storage
from tests.spark_app.debezium import SourceTable, event_row
from tests.spark_app.test_bronze import Bronze, bronze
from tests.spark_app.test_forgetting import land, table_in
from tributary.contract.lake import TablePolicy

__all__ = ["bronze"]

KEY = 987654321
"""A number that occurs nowhere by chance."""
TABLE = "source.public.things"


@pytest.fixture(scope="module")
def s3(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with storage(spark, tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def read_log(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """Return what Spark has logged since the test's begin, at first at the level INFO, as on EMR."""
    jvm: Any = spark._jvm
    context = jvm.org.apache.logging.log4j.LogManager.getContext(False)
    root = context.getConfiguration().getRootLogger()
    writer = jvm.java.io.StringWriter()
    appender = jvm.org.apache.logging.log4j.core.appender.WriterAppender.createAppender(
        None, None, writer, "erasure", False, True
    )
    appender.start()
    root.addAppender(appender, None, None)
    spark.sparkContext.setLogLevel("INFO")
    yield lambda: str(writer.toString())
    root.removeAppender("erasure")
    spark.sparkContext.setLogLevel("ERROR")


def _put(s3: Storage, name: str, content: str) -> str:
    with s3.files.filesystem.open_output_stream(f"{BUCKET}/{name}") as out:
        out.write(content.encode())
    return f"s3a://{BUCKET}/{name}"


def _reports(s3: Storage, name: str) -> Sequence[Mapping[str, Any]]:
    with s3.files.filesystem.open_input_stream(f"{BUCKET}/{name}") as found:
        return [json.loads(line) for line in found.read().decode().splitlines()]


def _is_there(s3: Storage, name: str) -> bool:
    return bool(s3.files.filesystem.get_file_info(f"{BUCKET}/{name}").is_file)


def test_keys_are_read_from_a_path_and_from_an_address_in_s3(
    spark: SparkSession, s3: Storage, tmp_path: Path
) -> None:
    keys = [{"": "7"}, {"order": "ä", "line": "2"}]
    file = tmp_path / "keys with a space.json"
    file.write_text(json.dumps(keys))
    assert ErasureFiles(spark, str(file), None).read_keys() == keys
    uri = _put(s3, "a/keys.json", json.dumps(keys))
    assert ErasureFiles(spark, uri, None).read_keys() == keys


@pytest.mark.parametrize("text", ["", "[]", "{}", f'["{KEY}"]', f'[{{"id": {KEY}}}]', f"{KEY}, no JSON"])
def test_what_are_no_keys_is_refused_without_a_quote(text: str, spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)
    with pytest.raises(KeysUnreadable) as error:
        ErasureFiles(spark, str(file), None).read_keys()
    assert str(KEY) not in str(error.value)


def test_an_error_is_in_the_report_alone(
    spark: SparkSession, s3: Storage, read_log: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    keys = _put(s3, "b/keys.json", "[]")
    files = ErasureFiles(spark, keys, f"s3a://{BUCKET}/b/report.jsonl")

    def fail() -> None:
        with files.reporting(io.StringIO(), TABLE) as out:
            ProgressWriter(out).write(Started((TABLE,)))
            raise ValueError(f"a plan with {KEY}")

    with pytest.raises(ErasureFailed) as error:
        fail()
    assert str(KEY) not in f"{error.value} {error.value.__cause__}"
    started, blocked = _reports(s3, "b/report.jsonl")
    assert started["event"] == "started"
    assert (blocked["event"], blocked["table"]) == ("blocked", TABLE)
    assert blocked["error"] == f"ValueError: a plan with {KEY}"
    assert str(KEY) not in "".join(capsys.readouterr())
    assert str(KEY) not in read_log()


def test_nothing_is_reported_to_a_command_that_is_gone(spark: SparkSession, s3: Storage) -> None:
    keys = f"s3a://{BUCKET}/c/keys.json"
    files = ErasureFiles(spark, keys, f"s3a://{BUCKET}/c/report.jsonl")
    with (
        pytest.raises(KeysUnreadable, match="The keys to erase are gone"),
        files.reporting(io.StringIO(), TABLE),
    ):
        files.read_keys()
    assert not _is_there(s3, "c/report.jsonl")


def test_a_run_without_a_report_writes_where_every_run_writes(spark: SparkSession) -> None:
    out = io.StringIO()
    with ErasureFiles(spark, "/nowhere", None).reporting(out, TABLE) as found:
        assert found is out


def test_keys_from_s3_are_erased_and_are_in_no_output_and_no_log(
    bronze: Bronze,
    s3: Storage,
    read_log: Callable[[], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = _with_deleted_row(bronze, tmp_path)
    keys = _put(s3, "d/keys.json", json.dumps([{"": str(KEY)}, {"": "2"}]))
    files = ErasureFiles(bronze.spark, keys, f"s3a://{BUCKET}/d/report.jsonl")

    def erase() -> bool:
        with files.reporting(io.StringIO(), TABLE) as out:
            found = files.read_keys()
            return run_for_each_table(
                bronze.source,
                lambda _: table,
                lambda one: erase_keys(one, found, ConnectorKeyEvents.of(one)),
                ProgressWriter(out),
                OutcomeFiles(bronze.spark),
            )

    assert not erase()  # because the row with the key 2 is still in the source
    blocked = _reports(s3, "d/report.jsonl")[1]
    assert "still in the source: found id=2" in blocked["error"]
    assert blocked["is_unchanged"]

    _put(s3, "d/keys.json", json.dumps([{"": str(KEY)}]))
    assert erase()
    _, erased, stopped = _reports(s3, "d/report.jsonl")
    assert (erased["event"], erased["keys"]) == ("erased", [{"id": str(KEY)}])
    assert (erased["rows"], erased["quarantined"]) == (1, 1)
    assert stopped["tables"] == {TABLE: "ok"}
    assert str(KEY) not in read_log()
    assert str(KEY) not in "".join(capsys.readouterr())
    # Executors on a cluster have logs of their own, and log the filters that are pushed down to files.
    plans = _plans(bronze.spark)
    assert any(str(KEY) in plan for plan in plans)
    pushed = [line for plan in plans for line in plan.splitlines() if _PUSHED.search(line)]
    assert pushed
    assert not [line for line in pushed if str(KEY) in _PUSHED.split(line, 1)[1]]


_PUSHED = re.compile(r"PushedFilters: |filters=|pushed", re.IGNORECASE)


def _plans(spark: SparkSession) -> Sequence[str]:
    """Return the plans of the queries that Spark has run, as its page of SQL queries shows them."""
    java: Any = spark._jsparkSession
    found = java.sharedState().statusStore().executionsList()
    return [found.apply(place).physicalPlanDescription() for place in range(found.size())]


def _with_deleted_row(bronze: Bronze, folder: Path) -> TableIngest:
    """Return a table whose row `KEY` is deleted softly, with one of its events in quarantine."""
    bronze.create()
    shop = SourceTable(identity="full")
    shop.begin()
    for key in (2, KEY):
        shop.insert(key, "first", None)
    shop.commit()
    shop.begin()
    shop.delete(KEY)
    shop.commit()
    sent = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    bad = (*sent[1][:2], len(sent), None, sent[1][4], bytearray(b"garbage"), None, None)
    land(bronze, [*sent, bad])
    table = table_in(bronze, folder, TablePolicy(deletes="soft"))
    table.apply((OffsetRange(0, 0, len(sent) + 1),))
    return table
