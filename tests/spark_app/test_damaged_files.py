"""A damaged file of an S3 sink stops its own table with a reason, and no other one."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import fastavro
import pytest
from pyspark.sql import SparkSession

from spark_app.sources.event import OffsetRange
from spark_app.sources.file_layouts import UnreadableFiles
from spark_app.sources.files import FilesSource
from spark_app.wire.sink_records import RecordsOfForms
from tributary.contract.lake import TablePolicy

DAMAGED, WHOLE = "dbserver1.public.damaged", "dbserver1.public.whole"
SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "id", "type": "int"}, {"name": "__op", "type": "string"}],
    }
)


def avro_file(events: int) -> bytes:
    written = io.BytesIO()
    fastavro.writer(written, SCHEMA, [{"id": number, "__op": "c"} for number in range(events)])
    return written.getvalue()


JSON = b'{"id": 1, "__op": "c"}\n'
FILES = {
    "an Avro file that ends in its header": ("avro", avro_file(50)[:40]),
    "an empty file that is called Avro": ("avro", b""),
    "a text that is called Avro": ("avro", JSON),
    "a gzip file that is cut off": ("json.gz", gzip.compress(JSON * 5000)[:-20]),
    "a text that is called gzip": ("json.gz", JSON),
}


def source_of(spark: SparkSession, folder: Path, *, allows_gaps: bool = False) -> FilesSource:
    policy = TablePolicy.model_validate({"key": ["id"], "columns": {"id": "int"}})
    return FilesSource(spark, str(folder), RecordsOfForms(), lambda _: policy, allows_gaps=allows_gaps)


@pytest.mark.parametrize("damage", FILES)
def test_a_damaged_last_file_is_named_and_other_topics_can_be_read(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    kind, content = FILES[damage]
    (tmp_path / f"{DAMAGED}+0+0000000000.{kind}").write_bytes(content)
    (tmp_path / f"{WHOLE}+0+0000000000.avro").write_bytes(avro_file(10))

    extents = source_of(spark, tmp_path).extents(frozenset({DAMAGED, WHOLE}))

    assert (extents[WHOLE].end, extents[WHOLE].problem) == ({0: 10}, None)
    problem = str(extents[DAMAGED].problem)
    assert f"{DAMAGED}+0+0000000000.{kind}" in problem
    assert "Copy the file again" in problem


@pytest.mark.parametrize("allows_gaps", [False, True])
@pytest.mark.parametrize(
    ("kind", "whole", "damaged"),
    [
        ("avro", avro_file(1), avro_file(1)[:40]),
        ("json.gz", gzip.compress(JSON), gzip.compress(JSON)[:-8]),
    ],
    ids=["avro", "json.gz"],
)
def test_a_damaged_file_before_the_last_one_is_named(
    spark: SparkSession, tmp_path: Path, kind: str, whole: bytes, damaged: bytes, allows_gaps: bool
) -> None:
    for offset, content in enumerate([whole, damaged, whole]):
        (tmp_path / f"{DAMAGED}+0+{offset:010}.{kind}").write_bytes(content)
    source = source_of(spark, tmp_path, allows_gaps=allows_gaps)
    assert source.extents(frozenset({DAMAGED}))[DAMAGED].end == {0: 3}
    with pytest.raises(UnreadableFiles, match=rf"{DAMAGED}\+0\+0000000001\.{kind}"):
        source.read(DAMAGED, (OffsetRange(0, 0, 3),))


def test_events_behind_the_place_where_a_file_was_cut_off_are_read_once_it_is_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / f"{DAMAGED}+0+0000000000.avro"
    path.write_bytes(avro_file(5000)[:-200])
    (read,) = source_of(spark, tmp_path).extents(frozenset({DAMAGED}))[DAMAGED].end.values()
    assert 0 < read < 5000
    path.write_bytes(avro_file(5000))
    source = source_of(spark, tmp_path)
    assert source.extents(frozenset({DAMAGED}))[DAMAGED].end == {0: 5000}
    assert source.read(DAMAGED, (OffsetRange(0, read, 5000),)).count() == 5000 - read
