"""The operations of the app on a table, with the S3 requests that mark their progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

from spark_app.hudi import compaction
from spark_app.table.rebuild import rebuild_table
from tests.faults.lake_on_s3 import LakeTable
from tests.faults.s3_faults import REMOVAL, Point
from tests.spark_app.debezium import SourceTable


@dataclass(frozen=True)
class Operation:
    """`prepare` leaves work for `run`. `run` then passes the points in this order."""

    name: str
    prepare: Callable[[LakeTable], None]
    run: Callable[[LakeTable], None]
    points: tuple[Point, ...]


def _inserts(source: SourceTable) -> None:
    for key in range(1, 9):
        source.insert(key, f"name {key}", f"body {key}" * 200)


def _changes(source: SourceTable) -> None:
    source.update(3, "changed", None, body_is_unchanged=True)
    source.delete(4)
    source.move(5, 50)
    source.insert(9, "another", "body")


def _update(source: SourceTable) -> None:
    source.update(6, f"changed at {source.lsn}", None, body_is_unchanged=True)


def _rows_to_load(table: LakeTable) -> None:
    table.transact(_inserts, lambda source: source.delete(8))


def _loaded(table: LakeTable) -> None:
    _rows_to_load(table)
    table.catch_up()
    table.transact(_update)
    table.catch_up()


def _changes_to_apply(table: LakeTable) -> None:
    _loaded(table)
    table.transact(_changes)


def _garbage_to_set_aside(table: LakeTable) -> None:
    _changes_to_apply(table)
    table.source.send_garbage(b"no event")


def _column_to_widen(table: LakeTable) -> None:
    _loaded(table)
    table.source.add_column("count", "int")
    table.transact(lambda source: source.insert(11, "narrow", None, count=1))
    table.catch_up()
    table.source.columns |= {"count": "bigint"}
    table.transact(lambda source: source.insert(12, "wide", None, count=2**40))


def _many_commits(table: LakeTable) -> None:
    _changes_to_apply(table)
    table.catch_up()
    for _ in range(4):
        table.transact(_update)
        table.catch_up()


def _outdated_files(table: LakeTable) -> None:
    _many_commits(table)
    table.hudi.compact()


def _commit_left_inflight(table: LakeTable) -> None:
    _changes_to_apply(table)
    table.end_within(LakeTable.catch_up, _COMMITTED, "before")


def _compaction_left_inflight(table: LakeTable) -> None:
    _many_commits(table)
    table.end_within(_compact, _COMPACTED, "before")


def _compact(table: LakeTable) -> None:
    table.hudi.compact()


def _compact_in_parts(table: LakeTable) -> None:
    with mock.patch.object(compaction, "PART_MEGABYTES", 0):
        table.hudi.compact()


def _shorten_timeline(table: LakeTable) -> None:
    table.hudi.shorten_timeline()


def _clean(table: LakeTable) -> None:
    table.hudi.clean()


def _rebuild(table: LakeTable) -> None:
    rebuild_table(table.ingest)


_INSTANT = r"/\.hoodie/\d+"
_MARKER, _LOG_FILE, _BASE_FILE = r"\.marker\.(CREATE|APPEND)", r"/\.[^/]+\.log\.[\d_-]+", r"/[^/.]+\.parquet"
_COMMITTED = Point("the commit", "PUT", rf"{_INSTANT}\.deltacommit")
_COMPACTED = Point("the compaction", "PUT", rf"{_INSTANT}\.commit")


def _replacement(name: str) -> tuple[Point, ...]:
    return (
        Point(f"request of the {name}", "PUT", rf"{_INSTANT}\.replacecommit\.requested"),
        Point(f"begin of the {name}", "PUT", rf"{_INSTANT}\.replacecommit\.inflight"),
        Point("a base file", "PUT", f"/table{_BASE_FILE}"),
        Point(f"the {name}", "PUT", rf"{_INSTANT}\.replacecommit"),
    )


OPERATIONS = (
    Operation(
        "load",
        _rows_to_load,
        LakeTable.catch_up,
        (
            Point("properties of the table", "PUT", r"/hoodie\.properties"),
            Point("request of the load", "PUT", rf"{_INSTANT}\.deltacommit\.requested"),
            Point("begin of the load", "PUT", rf"{_INSTANT}\.deltacommit\.inflight"),
            Point("a marker", "PUT", _MARKER),
            Point("a base file", "PUT", f"/table{_BASE_FILE}"),
            _COMMITTED,
        ),
    ),
    Operation(
        "commit",
        _changes_to_apply,
        LakeTable.catch_up,
        (
            Point("request of the commit", "PUT", rf"{_INSTANT}\.deltacommit\.requested"),
            Point("begin of the commit", "PUT", rf"{_INSTANT}\.deltacommit\.inflight"),
            Point("a marker", "PUT", _MARKER),
            Point("a log file", "PUT", _LOG_FILE),
            _COMMITTED,
        ),
    ),
    Operation(
        "quarantine",
        _garbage_to_set_aside,
        LakeTable.catch_up,
        (
            Point("a draft of the quarantined events", "PUT", r"/quarantine/.*/_temporary/.*\.parquet"),
            Point("the quarantined events", "PUT", r"/quarantine/e0-[^/]+/part-[^/]+\.parquet"),
            Point("their end", "PUT", r"/quarantine/e0-[^/]+/_SUCCESS"),
            _COMMITTED,
        ),
    ),
    Operation("widening of a column", _column_to_widen, LakeTable.catch_up, _replacement("widening")),
    Operation(
        "compaction",
        _many_commits,
        _compact,
        (
            Point("request of the compaction", "PUT", rf"{_INSTANT}\.compaction\.requested"),
            Point("begin of the compaction", "PUT", rf"{_INSTANT}\.compaction\.inflight"),
            Point("a base file", "PUT", f"/table{_BASE_FILE}"),
            _COMPACTED,
        ),
    ),
    Operation("compaction in parts", _many_commits, _compact_in_parts, (_COMPACTED,)),
    Operation(
        "shortening of the timeline",
        _many_commits,
        _shorten_timeline,
        (
            Point("removal of the commits' earlier states", "POST", REMOVAL),
            Point("removal of a commit", "DELETE", rf"{_INSTANT}\.deltacommit"),
        ),
    ),
    Operation(
        "cleaning",
        _outdated_files,
        _clean,
        (
            Point("removal of outdated files", "POST", REMOVAL),
            Point("request of the cleaning", "PUT", rf"{_INSTANT}\.clean\.requested"),
            Point("begin of the cleaning", "PUT", rf"{_INSTANT}\.clean\.inflight"),
            Point("the cleaning", "PUT", rf"{_INSTANT}\.clean"),
        ),
    ),
    Operation("rebuild", _many_commits, _rebuild, _replacement("rebuild")),
    Operation(
        "recovery of a commit",
        _commit_left_inflight,
        LakeTable.catch_up,
        (
            Point("request of the rollback", "PUT", rf"{_INSTANT}\.rollback\.requested"),
            Point("begin of the rollback", "PUT", rf"{_INSTANT}\.rollback\.inflight"),
            Point("the rollback", "PUT", rf"{_INSTANT}\.rollback"),
            Point("removal of the commit's begin", "DELETE", rf"{_INSTANT}\.deltacommit\.inflight"),
        ),
    ),
    Operation("recovery of a compaction", _compaction_left_inflight, LakeTable.catch_up, (_COMPACTED,)),
)
(COMMIT,) = (operation for operation in OPERATIONS if operation.name == "commit")
