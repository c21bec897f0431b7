"""Table services run between commits. Neither they nor a crash changes what a reader sees, now or as of any
commit of the history."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from pathlib import Path
from typing import cast, get_args

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from spark_app.columns.table_columns import APP_COLUMNS, TableColumns
from spark_app.hudi import cleaning, compaction, options
from spark_app.hudi import timeline as hudi_timeline
from spark_app.hudi.compaction import operations_of_part, schedule_compaction
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.instants import instant_of
from spark_app.hudi.timeline import Timeline
from spark_app.jvm import java_steps
from spark_app.ledger.commits import commit_metadata, last_commit
from spark_app.ledger.ledger import Ledger
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import OffsetRange
from spark_app.steps import steps
from spark_app.table import services
from spark_app.table.table_ingest import TableIngest
from spark_app.table.table_state import TableState
from spark_app.wire.topic_form import TopicForm
from tests.conftest import use_usual_steps
from tests.spark_app.debezium import TOPIC, SentEvent, SourceTable, event_row
from tests.spark_app.faults import compactions
from tests.spark_app.memory_source import MemorySource, table_of_things
from tests.spark_app.test_reading_back import read_without_spark
from tests.spark_app.typed_frames import typed_frame
from tributary.contract.lake import Storage, TablePolicy

COMMITS = 10
FEW_COMMITS = 3
AS_HUDI_WOULD = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.compact.inline.max.delta.commits": "1",
}
"""Options for an archival that leaves two commits."""

RECORDED = commit_metadata(Ledger(TOPIC))

Names = dict[int, str]


@pytest.fixture
def _compactions_in_parts() -> Iterator[None]:
    """Use the steps in Java: in plain PySpark, a compaction has one part."""
    steps.use(java_steps)
    yield
    use_usual_steps()


@dataclass
class Served:
    """A table after many commits and services of all kinds: its states, by the instants of its commits."""

    table: TableIngest
    hudi: HudiTable
    states: dict[str, Names]

    def timeline(self, suffix: str) -> int:
        return len(list(Path(self.hudi.path, ".hoodie").glob(f"[0-9]*.{suffix}")))

    def base_files(self) -> set[str]:
        return {path.name for path in Path(self.hudi.path).glob("*.parquet")}

    def log_files(self) -> Counter[str]:
        """Return the number of log files of each slice, by the slice's instant."""
        names = (path.name for path in Path(self.hudi.path).glob(".*.log.*") if path.suffix != ".crc")
        return Counter(name.partition("_")[2].partition(".")[0] for name in names)


@dataclass
class CountedServices:
    """Stands for a Hudi table whose services take no time."""

    policy: TablePolicy
    done: list[str] = field(default_factory=list)

    def existing_timeline(self) -> Timeline:
        return Timeline(self.policy.storage)

    def compact_part(self, _: str) -> bool:
        self.done.append("compact")
        return False

    def shorten_timeline(self) -> None:
        self.done.append("shorten")

    def clean(self) -> None:
        self.done.append("clean")


def _served_by(hudi: CountedServices) -> TableIngest:
    source = MemorySource.__new__(MemorySource)
    return TableIngest("things", TOPIC, source, cast(HudiTable, hudi), "", TopicForm(PostgresLog()))


@pytest.mark.parametrize("storage", get_args(Storage))
def test_services_wait_for_a_pause_but_not_indefinitely(storage: Storage) -> None:
    hudi = CountedServices(TablePolicy(storage=storage))
    columns = TableColumns((("id", IntegerType()),), ("id",))
    table = _served_by(hudi)
    assert not table.is_service_due(is_idle=True)
    table._state = TableState(Ledger(TOPIC), columns)
    assert table.is_service_due(is_idle=True)
    table.maintain()
    assert hudi.done == ["clean"]

    due = {True: 0, False: 0}
    for is_idle in due:
        while not table.is_service_due(is_idle=is_idle):
            table.services.commits += 1
        due[is_idle] = table.services.commits
    assert 0 < due[True] < due[False]
    table.maintain()
    assert not table.is_service_due(is_idle=True)
    assert hudi.done[1:] == (["compact", "shorten"] if storage == "merge_on_read" else ["shorten"])


@pytest.mark.parametrize("storage", get_args(Storage))
def test_requested_services_run_whether_or_not_they_are_due(storage: Storage) -> None:
    hudi = CountedServices(TablePolicy(storage=storage))
    table = _served_by(hudi)
    table._state = TableState(Ledger(TOPIC))
    assert table.serve().table == "things"
    assert hudi.done == []  # there is no table yet

    columns = TableColumns((("id", IntegerType()),), ("id",))
    table._state = TableState(Ledger(TOPIC), columns)
    for _ in range(2):
        hudi.done.clear()
        table.serve()
        assert hudi.done == (["compact"] if storage == "merge_on_read" else []) + ["shorten", "clean"]


@pytest.fixture(scope="module", params=["merge_on_read", "copy_on_write"])
def served(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    storage: Storage = request.param
    folder = tmp_path_factory.mktemp(storage)
    events = history()
    hudi = HudiTable(spark, str(folder / "silver"), "things", TablePolicy(buckets=1, storage=storage))
    rows = [event_row(event, offset) for offset, event in enumerate(events)]
    table = TableIngest(
        "things", TOPIC, MemorySource(spark, rows), hudi, str(folder / "quarantine"), TopicForm(PostgresLog())
    )
    states: dict[str, Names] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "COMMITS_BETWEEN_SERVICES", 3)
        patch.setattr(hudi_timeline, "ACTIVE_COMMITS", FEW_COMMITS)
        for number in range(COMMITS):
            committed = table.apply((OffsetRange(0, 2 * number, 2 * number + 2),))
            assert committed is not None
            states[committed.instant] = {
                key: row["name"] for key, row in events[2 * number + 1].state.items()
            }
            if table.is_service_due(is_idle=True):
                table.maintain()
        yield Served(table, hudi, states)


def history() -> list[SentEvent]:
    """Two events per commit. Among them, a column is added."""
    shop = SourceTable()
    shop.begin()
    for key in range(COMMITS):
        shop.insert(key, "first", None)
    shop.add_column("added", "text")
    for number in range(COMMITS):
        shop.update(number % 3, f"change {number}", None, body_is_unchanged=False)
    shop.commit()
    return shop.events


def test_rows_and_positions_outlast_compactions_and_a_timeline_that_is_shortened(served: Served) -> None:
    last = list(served.states)[-1]
    assert names(served.hudi.read()) == served.states[last]
    served.table.recover()
    assert served.table.ledger.positions == {0: 2 * COMMITS}
    if served.hudi.policy.storage == "merge_on_read":
        assert served.timeline("commit") > 0


def test_base_files_are_compressed_by_zstd_and_carry_no_filter_of_keys(served: Served) -> None:
    """This includes base files of a first load, whose writer puts a filter into each."""
    assert served.base_files()
    for name in served.base_files():
        metadata = pq.read_metadata(Path(served.hudi.path, name))
        columns = (metadata.row_group(0).column(number) for number in range(metadata.num_columns))
        assert {column.compression for column in columns} == {"ZSTD"}
        assert len(metadata.metadata.get(b"org.apache.hudi.bloomfilter", b"")) < 50


@pytest.mark.usefixtures("_compactions_in_parts")
def test_a_large_table_is_compacted_by_fewer_tasks_at_a_time_than_there_are_cores(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PART_MEGABYTES", 0)
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=3))
    state: Names = {}
    states: dict[str, Names] = {}
    for changed in (range(30), range(30), (0, 29)):
        if len(states) == 2:
            hudi.compact()
        values = dict.fromkeys(changed, f"change {len(states)}")
        write(hudi, values)
        state = state | values
        states[str(hudi.timeline().last_instant)] = state

    assert spark.sparkContext.defaultParallelism == 2
    assert len(compactions(hudi)) == 3
    for instant, as_it_was in states.items():
        assert names(as_of(hudi, instant)) == as_it_was
        without_spark = read_without_spark(hudi.path, instant)
        assert {row["id"]: row["name"] for row in without_spark} == as_it_was


def test_log_files_of_many_blocks_are_read_and_compacted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(options.LARGE_COMMIT_OPTIONS, "hoodie.logfile.data.block.max.size", "1")
    shop = SourceTable()
    shop.begin()
    for key in range(500):
        shop.insert(key, "first", None)
    shop.commit()
    shop.begin()
    for key in range(500):
        if key % 5:
            shop.update(key, "second", None, body_is_unchanged=False)
        else:
            shop.delete(key)
    shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1))
    table = table_of_things(hudi, rows, tmp_path)

    def is_read() -> bool:
        state = {key: row["name"] for key, row in shop.rows.items()}
        without_spark = read_without_spark(hudi.path, str(hudi.timeline().last_instant))
        return names(hudi.read()) == state == {row["id"]: row["name"] for row in without_spark}

    table.apply((OffsetRange(0, 0, 500),))
    table.apply((OffsetRange(0, 500, len(rows)),))
    [log_file] = (path for path in Path(hudi.path).glob(".*.log.*") if path.suffix != ".crc")
    blocks = log_file.read_bytes().count(b"#HUDI#")
    assert blocks > 4
    assert is_read()

    hudi.compact()
    assert len(compactions(hudi)) == 1
    assert is_read()


def test_dates_and_timestamps_of_long_ago_survive_a_compaction(spark: SparkSession, tmp_path: Path) -> None:
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1))
    moments = {1: datetime(1, 1, 1, tzinfo=UTC), 2: datetime(1582, 10, 10, 1, 2, 3, 4, UTC)}
    for name in ("first", "second"):
        found = rows(dict.fromkeys(moments, name), spark)
        ago = F.when(F.col("id") == 1, F.lit("0001-01-01 00:00:00")).otherwise("1582-10-10 01:02:03.000004")
        dated = found.withColumn("moment", ago.cast("timestamp")).withColumn("day", ago.cast("date"))
        hudi.write(dated, RECORDED)

    hudi.compact()

    assert [instant.action for instant in hudi.timeline().instants] == ["deltacommit"] * 2 + ["commit"]
    by_hudi_rs = read_without_spark(hudi.path, str(hudi.timeline().last_instant))
    assert {row["id"]: row["moment"] for row in by_hudi_rs} == moments
    assert {row["id"]: row["day"] for row in by_hudi_rs} == {key: m.date() for key, m in moments.items()}
    by_spark = hudi.read().select("id", F.col("moment").cast("string"), F.col("day").cast("string"))
    assert {tuple(row) for row in by_spark.collect()} == {
        (1, "0001-01-01 00:00:00", "0001-01-01"),
        (2, "1582-10-10 01:02:03.000004", "1582-10-10"),
    }


@pytest.mark.usefixtures("_compactions_in_parts")
def test_the_ledger_outlasts_a_compaction_in_more_parts_than_the_timeline_keeps_commits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PART_MEGABYTES", 0)
    monkeypatch.setattr(hudi_timeline, "ACTIVE_COMMITS", FEW_COMMITS)
    parts = 2 * FEW_COMMITS
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=parts))
    for name in ("first", "second", "third"):
        write(hudi, dict.fromkeys(range(20 * parts), name))
    commit = last_commit(hudi)

    hudi.compact()
    hudi.shorten_timeline()

    assert len(hudi.timeline().instants) == 1 + parts
    assert last_commit(hudi) == commit is not None


@pytest.mark.usefixtures("_compactions_in_parts")
def test_between_the_parts_of_its_compaction_a_table_gets_commits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PART_MEGABYTES", 0)
    monkeypatch.setattr(hudi_timeline, "ACTIVE_COMMITS", 100)
    monkeypatch.setattr(services, "COMMITS_BETWEEN_SERVICES", 2)
    shop = SourceTable()
    for transaction in range(8):
        shop.begin()
        for key in range(20):
            if transaction == 0:
                shop.insert(key, "new", None)
            else:
                shop.update(key, f"change {transaction}", None, body_is_unchanged=False)
        shop.commit()
    rows = [event_row(event, offset) for offset, event in enumerate(shop.events)]
    buckets = 3
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=buckets))
    table = table_of_things(hudi, rows, tmp_path)

    def commit(transaction: int) -> None:
        table.apply((OffsetRange(0, 0, 20 * (transaction + 1)),))
        state = dict.fromkeys(range(20), f"change {transaction}")
        assert names(hudi.read()) == state
        without_spark = read_without_spark(hudi.path, str(hudi.timeline().last_instant))
        assert {row["id"]: row["name"] for row in without_spark} == state

    table.apply((OffsetRange(0, 0, 20),))
    commit(1)
    for part in range(1, buckets + 1):
        assert table.is_service_due(is_idle=True)
        table.maintain()
        assert len(compactions(hudi)) == part
        commit(1 + part)
    assert not table.is_service_due(is_idle=True)

    commit(buckets + 2)
    table.maintain()
    assert table.is_service_due(is_idle=True)
    assert not table.is_service_due(is_idle=False)
    table.serve()
    assert len(compactions(hudi)) == 2 * buckets
    table.recover()
    commit(buckets + 3)


@pytest.mark.usefixtures("_compactions_in_parts")
def test_no_partition_is_left_out_of_a_compaction_in_parts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PART_MEGABYTES", 0)
    monkeypatch.setattr(hudi_timeline, "ACTIVE_COMMITS", 100)
    policy = TablePolicy(buckets=1, partition_by=("region",))
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", policy)
    regions = {0: "north", 1: "east", 2: "south", 3: "west"}

    def change(keys: Iterable[int], name: str) -> None:
        region = F.create_map(*[F.lit(item) for pair in regions.items() for item in pair])[F.col("id")]
        hudi.write(rows(dict.fromkeys(keys, name), spark).withColumn("region", region), RECORDED)

    def base_files(of: int) -> int:
        return len(list(Path(hudi.path, f"region={regions[of]}").glob("*.parquet")))

    change(regions, "first")
    for _ in range(2):
        before = {of: base_files(of) for of in regions}
        change(regions, "second")
        begun = instant_of(datetime.now(UTC))
        parts = 1
        while hudi.compact_part(begun):
            parts += 1
            change([0], f"after part {parts}")
        assert parts == len(regions)
        assert {of: base_files(of) for of in regions} == {of: count + 1 for of, count in before.items()}
    hudi.compact()
    assert not hudi.compact_part(instant_of(datetime.now(UTC)))
    assert names(hudi.read()) == dict.fromkeys(regions, "second") | {0: f"after part {parts}"}


@pytest.mark.parametrize(
    ("megabytes", "cores", "expected"),
    [
        ([500, 400, 300], 4, 3),
        ([500, 400, 300], 2, 1),
        ([40, 30, 20], 2, 1),
        ([30, 20, 10, 5], 2, 3),
        ([1] * 100, 2, 63),
        ([1, 1], 8, 2),
        ([], 2, 0),
    ],
)
def test_a_part_of_a_compaction_leaves_a_core_or_is_small(
    megabytes: list[float], cores: int, expected: int
) -> None:
    assert operations_of_part(megabytes, cores) == expected


def test_the_active_timeline_stays_short(served: Served) -> None:
    completed = served.timeline("commit") + served.timeline("deltacommit")
    assert FEW_COMMITS <= completed <= FEW_COMMITS + 4
    assert served.timeline("*") <= 3 * completed


def test_a_shortened_timeline_has_the_files_that_hudis_archival_would_leave(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hudi_timeline, "ACTIVE_COMMITS", 2)
    archived, shortened = (replace(served.hudi, path=str(tmp_path / name)) for name in ("archived", "short"))
    for copied in (archived, shortened):
        shutil.copytree(served.hudi.path, copied.path)

    with archived.access.write_client(AS_HUDI_WOULD) as client:
        client.archive()
    shortened.shorten_timeline()

    left = [path.name for path in Path(shortened.path, ".hoodie").glob("[0-9]*")]
    assert sorted(left) == sorted(path.name for path in Path(archived.path, ".hoodie").glob("[0-9]*"))
    assert len(left) < served.timeline("*")
    assert names(shortened.read()) == names(served.hudi.read())


def test_a_compaction_that_a_crash_left_behind_is_run_before_the_next_commit(served: Served) -> None:
    if served.hudi.policy.storage == "copy_on_write":
        pytest.skip("has no compactions")
    compacted = served.timeline("commit")
    schedule_compaction(served.hudi.access)
    assert served.timeline("compaction.requested") == served.timeline("commit") + 1
    served.table.recover()
    assert served.timeline("commit") == compacted + 1
    assert names(served.hudi.read()) == list(served.states.values())[-1]


def test_the_commit_times_of_a_later_states_rows_show_what_has_changed_since_a_commit(
    served: Served,
) -> None:
    instants = list(served.states)
    for since, until in combinations(instants[:: COMMITS // 3], 2):
        before, after = served.states[since], served.states[until]
        changed = as_of(served.hudi, until).where(F.col("_hoodie_commit_time") > since)
        assert names(changed) == {key: name for key, name in after.items() if before.get(key) != name}


def test_every_state_is_read_from_the_one_log_file_of_a_slice_that_was_superseded(
    served: Served,
) -> None:
    if served.hudi.policy.storage == "copy_on_write":
        pytest.skip("has no log files")
    served.hudi.shorten_timeline()
    served.hudi.clean()
    young = served.log_files()
    without_queries = served.hudi.policy.model_copy(update={"longest_query": timedelta(0)})
    replace(served.hudi, policy=without_queries).clean()
    old = served.log_files()

    first_active = min(path.stem for path in Path(served.hudi.path, ".hoodie").glob("[0-9]*.*commit"))
    merged = {instant for instant, superseding in pairwise(sorted(young)) if superseding < first_active}
    assert merged
    assert {instant for instant in young if old[instant] < young[instant]} == merged
    assert {old[instant] for instant in merged} == {1}
    for instant, state in served.states.items():
        assert names(as_of(served.hudi, instant)) == state
        without_spark = read_without_spark(served.hudi.path, instant)
        assert {row["id"]: row["name"] for row in without_spark} == state


def test_every_state_of_the_history_is_read_as_of_its_commit_whatever_was_cleaned(served: Served) -> None:
    instants = list(served.states)
    for first in (0, COMMITS // 2, COMMITS - 1):
        files = served.base_files()
        clean_all_before(served.hudi, instants[first])
        assert (served.base_files() < files) == (first > 0)
        for instant in instants[first:]:
            assert names(as_of(served.hudi, instant)) == served.states[instant]


@pytest.mark.parametrize("after_many_commits", [False, True])
def test_a_commit_that_replaced_all_files_stays_in_the_timeline_until_these_are_cleaned(
    after_many_commits: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hudi_timeline, "ACTIVE_COMMITS", 2)
    policy = TablePolicy(buckets=1, storage="copy_on_write")
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", policy)
    served = Served(cast(TableIngest, None), hudi, {})
    write(hudi, {1: "old", 2: "old"})
    replacing = {**hudi.access.options, "hoodie.datasource.write.operation": "insert_overwrite_table"}
    rows({1: "new"}, spark).write.format("hudi").options(**replacing).mode("append").save(hudi.path)
    instants = []
    for number in range(4):
        write(hudi, {3: f"change {number}"})
        instants.append(str(hudi.timeline().last_instant))

    hudi.shorten_timeline()
    assert served.timeline("replacecommit") == 1
    assert names(hudi.read()) == {1: "new", 3: "change 3"}
    if after_many_commits:
        monkeypatch.setattr(cleaning, "MOST_COMMITS_AFTER_A_REPLACEMENT", 4)
        at_once = replace(hudi, policy=policy.model_copy(update={"longest_query": timedelta(0)}))
        at_once.clean()
        assert served.timeline("clean") == 0
        monkeypatch.setattr(cleaning, "MOST_COMMITS_AFTER_A_REPLACEMENT", 3)
        hudi.clean()
        assert served.timeline("clean") == 0  # as long as a query may run
        at_once.clean()
    else:
        clean_all_before(hudi, instants[-1])
    hudi.shorten_timeline()
    assert served.timeline("replacecommit") == 0
    assert names(hudi.read()) == {1: "new", 3: "change 3"}
    for number, instant in enumerate(instants):
        if after_many_commits or instant == instants[-1]:
            assert names(as_of(hudi, instant)) == {1: "new", 3: f"change {number}"}


def test_nothing_is_cleaned_while_a_commit_is_unfinished(spark: SparkSession, tmp_path: Path) -> None:
    policy = TablePolicy(buckets=1, storage="copy_on_write")
    hudi = HudiTable(spark, str(tmp_path / "silver"), "things", policy)
    served = Served(cast(TableIngest, None), hudi, {})
    for number in range(3):
        write(hudi, {1: f"change {number}"})
    commit = last_commit(hudi)
    assert commit is not None
    files, timeline = served.base_files(), Path(hudi.path, ".hoodie")
    requested = timeline / f"{int(commit.instant) + 1}.commit.requested"

    requested.touch()
    clean_all_before(hudi, commit.instant)
    assert served.base_files() == files
    requested.unlink()
    clean_all_before(hudi, commit.instant)
    assert served.base_files() < files


def write(hudi: HudiTable, values: Names) -> None:
    hudi.write(rows(values, hudi.spark), RECORDED)


def rows(values: Names, spark: SparkSession) -> DataFrame:
    schema = [*APP_COLUMNS.fields, StructField("id", IntegerType()), StructField("name", StringType())]
    found = [
        (str(key), "u", time.time_ns(), datetime.now(UTC), TOPIC, 0, 0, bytearray(8), key, name)
        for key, name in values.items()
    ]
    return typed_frame(spark, found, StructType(schema))


def clean_all_before(hudi: HudiTable, instant: str) -> None:
    written = datetime.strptime(instant, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    # A compaction can follow its last commit within milliseconds. One commit cannot follow another that fast.
    age = datetime.now(UTC) - written + timedelta(milliseconds=100)
    policy = hudi.policy.model_copy(update={"history": age, "longest_query": age})
    replace(hudi, policy=policy).clean()


def as_of(hudi: HudiTable, instant: str) -> DataFrame:
    return hudi.spark.read.format("hudi").option("as.of.instant", instant).load(hudi.path)


def names(rows: DataFrame) -> Names:
    return {row["id"]: row["name"] for row in rows.select("id", "name").collect()}


def test_services_requested_twice_change_nothing_that_is_read(served: Served) -> None:
    before = served.hudi.read().orderBy("id").select("id", "name").collect()
    for _ in range(2):
        served.table.serve()
        served.table.forget()
        assert served.hudi.read().orderBy("id").select("id", "name").collect() == before
