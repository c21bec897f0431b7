"""The preflight tries everything, says what fails, and is stored by release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.acceleration import choice
from spark_app.run.preflight import Places, run_preflight
from tests.conftest import use_usual_steps
from tests.spark_app.glue import DATABASE, Glue
from tributary.contract.preflight import Preflight, preflight_file, tried

RELEASE = "emr-7.99.0"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    use_usual_steps()


def test_a_preflight_tries_all_and_the_app_may_run_without_its_java(
    spark: SparkSession, glue: Glue, glue_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    glue.client.create_database(DatabaseInput={"Name": DATABASE})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        # Spark's Python workers get these variables besides those of the JVM, which is older than this test.
        monkeypatch.setitem(spark.sparkContext.environment, name, "test")
    monkeypatch.setattr(choice, "_ONE_OF_OURS", "io/tributary/spark/NotThere.class")

    def no_topics() -> frozenset[str]:
        raise OSError("SASL authentication failed")

    folder = str(tmp_path)
    places = Places(folder, folder, no_topics, DATABASE, glue_server, on_aws=True)
    found = run_preflight(spark, RELEASE, places)

    states = {check.name.partition(",")[0]: check.state for check in found.checks}
    assert states == {
        "credentials of the driver": "passed",
        "credentials of the executors": "passed",
        "login to Kafka": "failed",
        "catalog in Glue": "passed",
        "plain PySpark": "passed",
        "all that our Java links to": "failed",
    }, found
    assert (found.is_passed, found.is_accelerated) == (False, False)
    (login,) = (check for check in found.checks if check.name == "login to Kafka")
    assert login.detail == "OSError: SASL authentication failed"
    assert Preflight.from_json((tmp_path / preflight_file(RELEASE)).read_text()) == found
    assert not any(path.suffix == ".parquet" for path in tmp_path.rglob("*"))


def test_what_needs_no_java_decides_whether_a_release_passes() -> None:
    def fail() -> str:
        raise ValueError("no")

    required, other = tried("a", lambda: "fine"), tried("b", fail, is_required=False)
    found = Preflight(RELEASE, "now", "3.5", (required, other))
    assert (found.is_passed, found.is_accelerated) == (True, False)
    assert Preflight.from_json(found.to_json()) == found
    assert Preflight.from_json("{}") is None
