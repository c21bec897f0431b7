"""Every past state stays readable if a process ends while it merges a table's old log files."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

import pytest
from pyspark.sql import Row, SparkSession

from spark_app.hudi import timeline
from spark_app.ledger.commits import last_commit
from tests.faults.lake_on_s3 import LakeTable, Storage
from tests.faults.s3_faults import REMOVAL, Moment, Point
from tests.soak import SOAKS
from tests.spark_app.debezium import SourceTable
from tributary.contract.lake import TablePolicy

POINTS = (
    Point("a draft of the merged file", "PUT", r"/\.hoodie/\.temp/.*\.log\.0_0-0-0"),
    Point("the merged file", "PUT", r"/table/\.[^/]+\.log\.0_0-0-0"),
    Point("removal of the log files", "POST", REMOVAL),
)
CASES = tuple((point, moment) for point in POINTS for moment in get_args(Moment))


@dataclass(frozen=True)
class Versioned:
    """A table with slices that were superseded before its active timeline begins.

    Its rows are by the instants of its commits.
    """

    table: LakeTable
    states: Mapping[str, list[Row]]


@pytest.fixture(scope="module")
def versioned(spark: SparkSession, s3: Storage) -> Iterator[Versioned]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeline, "ACTIVE_COMMITS", 2)
        table, instants = LakeTable(spark, s3, "versioned", TablePolicy(longest_query=timedelta(0))), []
        table.transact(lambda source: source.insert(1, "first", None))
        for number in range(8):
            table.catch_up()
            commit = last_commit(table.hudi)
            assert commit is not None
            instants.append(commit.instant)
            if number % 3 == 2:
                table.hudi.compact()
            table.transact(_change)
        table.hudi.shorten_timeline()
        table.end_process()
        yield Versioned(table, _states(table, instants))


@pytest.mark.parametrize(
    ("point", "moment"), CASES if SOAKS else CASES[3:4], ids=lambda value: getattr(value, "name", value)
)
def test_every_state_is_read_after_the_end_of_a_process_that_merges_log_files(
    versioned: Versioned, point: Point, moment: Moment
) -> None:
    original = versioned.table
    name = f"merge-{moment}-{point.name.replace(' ', '-')}"
    table = original.copied_as(name, copy.deepcopy(original.source))

    table.end_within(lambda table: table.hudi.clean(), point, moment)

    _check_states_and_another_cleaning(table, versioned)


def test_every_state_is_read_if_s3_has_removed_only_some_of_the_log_files(versioned: Versioned) -> None:
    original = versioned.table
    table = original.copied_as("merge-partly-removed", copy.deepcopy(original.source))
    table.end_within(lambda table: table.hudi.clean(), POINTS[-1], "before")
    files = table.storage.bucket / table.name / "table"

    merged_files = list(files.glob(".*.log.0_*"))
    assert merged_files
    for merged in merged_files:
        newest = max(files.glob(f"{merged.name.partition('.log.')[0]}.log.[1-9]*"))
        newest.unlink()

    _check_states_and_another_cleaning(table, versioned)


def _check_states_and_another_cleaning(table: LakeTable, versioned: Versioned) -> None:
    assert _states(table, versioned.states) == versioned.states
    table.hudi.clean()
    assert _states(table, versioned.states) == versioned.states
    before, after = _log_files_by_slice(versioned.table), _log_files_by_slice(table)
    oldest = min(one for one in before if before[one] > 1)
    assert after[oldest] == 1
    table.catch_up()
    table.check()


def _change(source: SourceTable) -> None:
    key = 10 + len(source.events)
    source.insert(key, f"name {key}", None)
    source.update(1, f"changed at {source.lsn}", None, body_is_unchanged=True)
    if key % 2:
        source.delete(key)


def _states(table: LakeTable, instants: Iterable[str]) -> Mapping[str, list[Row]]:
    return {instant: _as_of(table, instant) for instant in instants}


def _as_of(table: LakeTable, instant: str) -> list[Row]:
    rows = table.spark.read.format("hudi").option("as.of.instant", instant).load(table.hudi.path)
    return rows.select("_hoodie_commit_time", "id", "name", "_offset").orderBy("id").collect()


def _log_files_by_slice(table: LakeTable) -> Counter[tuple[str, str]]:
    """Count each slice's log files, by the slice's instant and file id."""
    names = (path.name for path in (table.storage.bucket / table.name / "table").glob(".*.log.*"))
    parts = (name.partition(".log.")[0].partition("_") for name in names)
    return Counter((instant, file_id) for file_id, _, instant in parts)
