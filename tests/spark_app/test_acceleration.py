"""The app uses its Java only where everything that it links to is there, and says what is missing."""

from __future__ import annotations

import importlib
import pkgutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import spark_app.jvm
from spark_app.acceleration import choice
from spark_app.acceleration.choice import NotAccelerated, choose_steps
from spark_app.acceleration.class_file import read_class
from spark_app.acceleration.link_check import ReadClass, classes_in, in_jars, missing_links
from spark_app.acceleration.missing_member import missing_member
from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import OffsetRange
from spark_app.steps import steps
from spark_app.table.table_ingest import TableIngest
from tests.conftest import use_usual_steps
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tributary.contract.acceleration import Acceleration
from tributary.contract.lake import Storage, TablePolicy, parse_lake
from tributary.local.spark_jars import classes_jar, spark_jars

BUCKETS = "org/apache/hudi/index/bucket/BucketIdentifier"
"""A class of Hudi that our Java calls."""


@pytest.fixture(scope="module")
def on_this_machine() -> Iterator[ReadClass]:
    of_spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    with in_jars([*spark_jars()[:-1], *of_spark]) as read:
        yield read


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    use_usual_steps()


@pytest.mark.slow
def test_everything_that_our_java_links_to_is_in_the_pinned_jars(on_this_machine: ReadClass) -> None:
    assert missing_links(classes_in(classes_jar()), on_this_machine) == []


@pytest.mark.slow
def test_a_method_that_another_release_lacks_is_named(on_this_machine: ReadClass) -> None:
    own = classes_in(classes_jar())
    lacking = min(link for found in own for link in found.links if link.owner == BUCKETS)

    def read(name: str) -> bytes | None:
        content = on_this_machine(name)
        return content if content is None or name != BUCKETS else _renamed(content, lacking.name)

    assert str(lacking) in missing_links(own, read)


@pytest.mark.slow
def test_a_class_that_another_release_lacks_is_named_and_not_each_of_its_members(
    on_this_machine: ReadClass,
) -> None:
    missing = missing_links(
        classes_in(classes_jar()), lambda name: None if name == BUCKETS else on_this_machine(name)
    )
    assert missing == [BUCKETS.replace("/", ".")]


@pytest.mark.slow
def test_a_class_file_says_what_it_declares_and_inherits(on_this_machine: ReadClass) -> None:
    found = read_class(_read(on_this_machine, "org/apache/hudi/client/SparkRDDWriteClient"))
    assert found.parents == ("org/apache/hudi/client/BaseHoodieWriteClient",)
    assert "startCommit" in {name for name, _ in found.members} | {
        name for name, _ in read_class(_read(on_this_machine, found.parents[0])).members
    }


def _read(read: ReadClass, name: str) -> bytes:
    content = read(name)
    assert content is not None
    return content


def test_what_is_no_class_file_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin as a Java class"):
        read_class(b"PK\x03\x04 a zip file, and no class")


def test_the_running_spark_has_what_our_java_links_to(spark: SparkSession) -> None:
    assert choose_steps(spark, "auto").steps == "accelerated"
    assert choose_steps(spark, "required").steps == "accelerated"
    chosen = choose_steps(spark, "off")
    assert (chosen.steps, steps.steps().name) == ("plain", "plain")


@pytest.mark.parametrize("missing", ["the jar", "a method"])
def test_without_something_auto_runs_plain_and_required_refuses(
    spark: SparkSession, missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if missing == "the jar":
        monkeypatch.setattr(choice, "_ONE_OF_OURS", "io/tributary/spark/NotThere.class")
    else:
        changed = tmp_path / "changed.jar"
        with zipfile.ZipFile(classes_jar()) as before, zipfile.ZipFile(changed, "w") as after:
            for name in before.namelist():
                after.writestr(name, _renamed(before.read(name), "getBucketId"))
        monkeypatch.setattr(choice, "_jar_of", lambda _: changed)

    chosen = choose_steps(spark, "auto")
    assert (chosen.steps, steps.steps().name) == ("plain", "plain")
    with pytest.raises(NotAccelerated, match="acceleration"):
        choose_steps(spark, "required")


def _renamed(content: bytes, name: str) -> bytes:
    """Return a class with another name in the place of this one, of the same length."""
    return content.replace(name.encode(), b"_" * len(name))


@pytest.mark.parametrize("storage", get_args(Storage))
def test_plain_steps_take_a_table_through_two_batches_without_any_java_of_ours(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, storage: Storage
) -> None:
    def refuse(_spark: SparkSession, name: str) -> Any:
        raise AssertionError(f"plain PySpark has called {name}")

    for module in pkgutil.iter_modules(spark_app.jvm.__path__, "spark_app.jvm."):
        loaded = importlib.import_module(module.name)
        if hasattr(loaded, "java_class"):
            monkeypatch.setattr(loaded, "java_class", refuse)
    choose_steps(spark, "off")
    source = SourceTable()
    source.begin()
    for number in range(5):
        source.insert(number, f"first {number}", "long")
    source.commit()
    loaded_until = len(source.events)
    source.begin()
    source.update(1, "changed", None, body_is_unchanged=True)
    source.delete(2)
    source.move(3, 8)
    source.commit()
    rows = [event_row(sent, offset) for offset, sent in enumerate(source.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(storage=storage))
    table = TableIngest(
        "things", TOPIC, MemorySource(spark, rows), hudi, str(tmp_path / "quarantine"), PostgresLog()
    )
    table.apply((OffsetRange(0, 0, loaded_until),))
    table.apply((OffsetRange(0, loaded_until, len(rows)),))

    found = {row["id"]: (row["name"], row["body"]) for row in hudi.read().collect()}
    first = {number: (f"first {number}", "long") for number in (0, 4)}
    assert found == {**first, 1: ("changed", "long"), 8: ("first 3", "long")}


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (
            Py4JError("py4j.Py4JException: Method commitStats([class java.lang.String]) does not exist\n"),
            "commitStats([class java.lang.String])",
        ),
        (TypeError("'JavaPackage' object is not callable"), "a Java class"),
        (
            OSError(
                "Job aborted: java.lang.NoSuchMethodError: 'void org.example.Thing.go()'\n\tat org.example"
            ),
            "'void org.example.Thing.go()'",
        ),
        (
            RuntimeError("Caused by: java.lang.NoClassDefFoundError: org/example/Thing\n"),
            "org/example/Thing",
        ),
    ],
)
def test_an_error_of_a_missing_member_names_it(error: Exception, found: str) -> None:
    missing = missing_member(error)
    assert missing is not None
    assert missing.found == f"missing: {found}"


@pytest.mark.parametrize(
    "error", [OSError("S3 is away"), Py4JError("Answer from Java side is empty"), TypeError("no int")]
)
def test_an_error_that_may_pass_is_no_missing_member(error: Exception) -> None:
    assert missing_member(error) is None


@pytest.mark.parametrize("wanted", ["auto", "off", "required"])
def test_the_lake_file_says_whether_java_may_be_used(wanted: Acceleration) -> None:
    source = '[source.a]\nengine = "postgres"\ndatabase = "a"\ntables = ["public.*"]\n'
    lake = parse_lake(f'[lake]\nname = "shop"\nacceleration = "{wanted}"\n{source}')
    assert lake.acceleration == wanted
