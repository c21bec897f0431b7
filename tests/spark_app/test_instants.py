"""The instants of a timeline are found by the names of its files and the times at which they were written."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from spark_app.hudi.instants import CompletedInstant, completed_instants, instant_of
from spark_app.hudi.table_files import Entry, parse_entry
from spark_app.hudi.table_properties import parse_properties, properties_text
from spark_app.hudi.timeline import Timeline
from spark_app.hudi.timeline_files import PendingInstants, pending_instants

FIRST, COMPACTION, LAST = (
    "20261122101500123.deltacommit",
    "20261122101501123.commit",
    "20261122101503123.deltacommit",
)
NAMES = sorted(
    [
        *(FIRST, f"{FIRST}.requested", f"{FIRST}.inflight"),
        *(COMPACTION, "20261122101501123.compaction.requested", "20261122101501123.compaction.inflight"),
        *(LAST, f"{LAST}.requested", f"{LAST}.inflight"),
        *("20261122101504000.clean", "20261122101505000.rollback.inflight", "hoodie.properties", ".temp"),
    ]
)


def _written(second: int) -> int:
    return round(datetime(2026, 11, 22, 10, 15, second, tzinfo=UTC).timestamp() * 1000)


def test_instants_are_in_the_order_of_their_requests_and_sort_by_their_completion() -> None:
    instants = completed_instants({LAST: _written(5), FIRST: _written(9), COMPACTION: _written(5)})
    assert instants[0] == CompletedInstant("20261122101509000", "20261122101500123", "deltacommit")
    assert [instant.file for instant in instants] == [FIRST, COMPACTION, LAST]
    assert sorted(instants) == [instants[1], instants[2], instants[0]]


def test_a_compaction_is_a_commit_of_a_copy_on_write_table_only() -> None:
    instants = completed_instants({FIRST: _written(9), COMPACTION: _written(5), LAST: _written(5)})
    merge_on_read = Timeline("merge_on_read", instants)
    assert merge_on_read.requested == {FIRST[:17], LAST[:17]}
    assert merge_on_read.last_instant == LAST[:17]
    assert merge_on_read.commits_since_services == 1
    assert Timeline("copy_on_write", instants).requested == {FIRST[:17], COMPACTION[:17], LAST[:17]}
    assert Timeline("merge_on_read").last_instant is None


def test_an_instant_is_pending_until_its_last_file_is_there() -> None:
    assert pending_instants(NAMES) == PendingInstants()
    compaction, last = COMPACTION[:17], LAST[:17]
    left = [name for name in NAMES if name not in (COMPACTION, LAST)]
    assert pending_instants(left) == PendingInstants((compaction, last), (compaction,))
    of_copy_on_write = ["20261122101500123.commit.requested", "20261122101500123.inflight"]
    assert pending_instants(of_copy_on_write) == PendingInstants((FIRST[:17],))


@given(st.dictionaries(st.from_regex(r"[a-z.]{1,20}", fullmatch=True), st.text(max_size=30)), st.text())
def test_properties_are_read_as_they_were_written(properties: dict[str, str], name: str) -> None:
    found = dict(parse_properties(properties_text(name, properties)))
    del found["hoodie.table.checksum"]
    assert found == properties


def test_properties_that_java_wrote_are_read() -> None:
    text = "#Properties saved on 2026-11-27\n#Fri Nov 27 11:27:10 UTC 2026\na.b=c\\:d\\u00e9\nempty=\n"
    assert parse_properties(text) == {"a.b": "c:dé", "empty": ""}


def test_a_listing_is_read_from_the_texts_of_hadoop_s_file_systems() -> None:
    of_s3 = (
        "S3AFileStatus{path=s3a://lake/a/.hoodie/20261122101500123.deltacommit; isDirectory=false; length=5; "
        "replication=1; blocksize=33554432; modification_time=1795342509000; access_time=0; owner=root; "
        "group=root; permission=rw-rw-rw-; isSymlink=false; hasAcl=false; isEncrypted=true; "
        "isErasureCoded=false} isEmptyDirectory=FALSE eTag=abc versionId=null"
    )
    of_others = (
        "FileStatus{path=hdfs://lake/a/state=a; b,c; isDirectory=true; modification_time=7; access_time=0; "
        "owner=root; group=root; permission=rwxr-xr-x; isSymlink=false; hasAcl=false}"
    )
    assert parse_entry(of_s3) == Entry("20261122101500123.deltacommit", False, 1_795_342_509_000)
    assert parse_entry(of_others) == Entry("state=a; b,c", True, 7)
    assert parse_entry("a file") is None


def test_an_instant_is_named_to_the_millisecond() -> None:
    assert instant_of(datetime(2026, 11, 22, 9, 5, 7, 123_999, UTC)) == "20261122090507123"
