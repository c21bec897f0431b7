"""The app uses its Java only where everything that it links to is there, and says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_app.acceleration import choice
from spark_app.acceleration.choice import NotAccelerated, SelfTest, choose_steps
from spark_app.acceleration.class_file import read_class
from spark_app.acceleration.class_path import directory_of
from spark_app.acceleration.link_check import ReadClass, classes_in, in_jars, missing_links
from spark_app.acceleration.missing_member import missing_member
from spark_app.hudi.append_writer import AppendWriter
from spark_app.run.self_test import run_self_test
from spark_app.run.steps_files import StepsFiles
from spark_app.steps import steps
from tests.committed import assert_documented
from tests.conftest import use_usual_steps
from tributary.contract.acceleration import Acceleration
from tributary.contract.lake import parse_lake
from tributary.local.spark_jars import classes_jar, spark_jars

PROJECT = Path(__file__).parents[2]
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


PUBLIC = {
    "org.apache.hadoop.fs.Path": "reads and writes files",
    "org.apache.hadoop.io.IOUtils": "joins log files",
    "org.apache.hadoop.util.StringUtils": "lists a folder with one call",
    "org.apache.hadoop.util.functional.RemoteIterators": "lists a folder with one call",
    "org.apache.hudi.DataSourceUtils": "opens the client that records a cleaning",
    "org.apache.hudi.avro.model.HoodieActionInstant": "is part of the plan of a cleaning",
    "org.apache.hudi.avro.model.HoodieCleanFileInfo": "is part of the plan of a cleaning",
    "org.apache.hudi.avro.model.HoodieCleanerPlan": "is the plan of a cleaning",
    "org.apache.hudi.common.table.HoodieTableMetaClient": "saves the plan of a cleaning",
    "org.apache.hudi.common.util.Option": "holds the plan of a cleaning",
    "org.apache.hudi.hadoop.fs.HadoopFSUtils": "opens the client that saves the plan of a cleaning",
}
"""The classes that plain PySpark calls by name, except those of Java and Spark, and what each does."""


@pytest.mark.slow
@pytest.mark.long
def test_plain_steps_run_without_our_jar_and_name_few_java_classes(tmp_path: Path) -> None:
    """A process without the jar writes, compacts, cleans, rebuilds and reads tables of both storages."""
    command = [sys.executable, "-m", "tests.spark_app.plain_alone", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
    told = json.loads(found.stdout.splitlines()[-1])
    assert told["steps"] == "plain"
    assert "the jar of the app's Java classes" in told["reason"]
    assert set(told["named"]) <= PUBLIC.keys()
    assert [name for name in told["named"] if name.startswith("org.apache.hudi")] == [
        name for name in PUBLIC if name.startswith("org.apache.hudi")
    ]


def test_the_docs_list_the_java_classes_that_plain_pyspark_calls() -> None:
    lines = ["| Class | What it does |", "|---|---|"]
    lines += [f"| `{name}` | {what} |" for name, what in PUBLIC.items()]
    assert_documented("docs/engine.md", "public classes", "\n".join(lines))


@dataclass
class KnownPasses:
    """Passes in memory."""

    known: set[str] = field(default_factory=set)

    def has(self, fingerprint: str, /) -> bool:
        return fingerprint in self.known

    def add(self, fingerprint: str, /) -> None:
        self.known.add(fingerprint)


def test_the_self_test_passes_with_java_leaves_nothing_and_runs_once_for_a_class_path(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs: list[str] = []

    def run() -> None:
        runs.append(steps.steps().name)
        run_self_test(spark, str(tmp_path))

    test = SelfTest(run, StepsFiles(spark, str(tmp_path)))
    for _ in range(2):
        assert choose_steps(spark, "auto", self_test=test).steps == "accelerated"
    assert runs == ["accelerated"]
    left = {path.name for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith(".")}
    assert {name.partition("-")[0] for name in left} == {"passed"}


def test_without_a_passed_self_test_auto_runs_plain_says_why_and_tries_again_at_the_next_start(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_nothing(self: AppendWriter, rows: object, metadata: object, spread: object) -> None:
        """Do what a Hudi would do that ignores the rows."""

    monkeypatch.setattr(AppendWriter, "write", write_nothing)
    passes = KnownPasses()
    test = SelfTest(lambda: run_self_test(spark, str(tmp_path)), passes)
    chosen = choose_steps(spark, "auto", self_test=test)
    assert (chosen.steps, steps.steps().name) == ("plain", "plain")
    assert "the self-test failed: " in chosen.reason
    assert not passes.known

    def fail() -> None:
        raise AssertionError("no")

    with pytest.raises(NotAccelerated, match="self-test failed: AssertionError: no"):
        choose_steps(spark, "required", self_test=SelfTest(fail, passes))


def test_a_fingerprint_tells_another_content_of_a_jar(tmp_path: Path) -> None:
    found = []
    for content in (b"one", b"two", b"one"):
        with zipfile.ZipFile(tmp_path / "some.jar", "w") as jar:
            jar.writestr(zipfile.ZipInfo("A.class"), content)
        found.append(directory_of(tmp_path / "some.jar"))
    assert found[0] == found[2] != found[1]


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
