"""Readers and Hudi find the rows that were appended to a merge-on-read table's logs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.columns.app_columns import RECORD_KEY
from spark_app.columns.table_columns import APP_COLUMNS
from spark_app.hudi.hudi_table import HudiTable
from spark_app.hudi.spread import RowsInBuckets
from spark_app.ledger.commits import last_commit
from tests.parameters import first_then_long
from tests.spark_app.table_rows import NOTED, RECORDED, table_rows, upsert_by_hudi
from tributary.contract.lake import Storage, TablePolicy

_SOME_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_VALUES: tuple[tuple[DataType, st.SearchStrategy[Any]], ...] = (
    (BooleanType(), st.booleans()),
    (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (LongType(), st.integers(-(2**63), 2**63 - 1)),
    (FloatType(), st.floats(width=32)),
    (DoubleType(), st.floats()),
    (DecimalType(5, 2), st.decimals(-999, 999, places=2)),
    (DecimalType(38, 10), st.decimals(-(10**27), 10**27, places=10)),
    (StringType(), _SOME_TEXT),
    (BinaryType(), st.binary(max_size=8).map(bytearray)),
    (DateType(), st.dates()),
    (TimestampType(), st.datetimes(datetime(1902, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC))),
    (ArrayType(LongType()), st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    (ArrayType(DecimalType(5, 2)), st.lists(st.none() | st.decimals(-9, 9, places=2), max_size=3)),
    (MapType(StringType(), StringType()), st.dictionaries(_SOME_TEXT, st.none() | _SOME_TEXT, max_size=3)),
    (
        StructType([StructField("day", DateType()), StructField("of", ArrayType(StringType()))]),
        st.tuples(st.none() | st.dates(), st.none() | st.lists(_SOME_TEXT, max_size=2)),
    ),
)
_PLAIN = tuple(v for v in _VALUES if not isinstance(v[0], ArrayType | MapType | StructType))


@pytest.mark.parametrize("storage", get_args(Storage))
@pytest.mark.parametrize("values", [_PLAIN, _VALUES], ids=["plain values", "values within values"])
@settings(
    max_examples=2,
    deadline=None,
    # Shrinking an example takes minutes, because each is two commits and a compaction.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_values_of_every_type_are_read_as_they_were_written(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    values: tuple[tuple[DataType, st.SearchStrategy[Any]], ...],
    storage: Storage,
    data: st.DataObject,
) -> None:
    """Write into the base files of a first commit (Spark's writer for plain values, Hudi's for others).

    Then upsert: a copy-on-write table by Hudi, which reads the base files; any other into log files and the
    base files of a compaction, which reads both."""
    schema = StructType(
        [*APP_COLUMNS.fields, *(StructField(f"c{n}", data_type) for n, (data_type, _) in enumerate(values))]
    )
    rows = data.draw(st.lists(st.tuples(*(st.none() | v for _, v in values)), min_size=1, max_size=40))
    table = HudiTable(
        spark, str(tmp_path_factory.mktemp("silver")), "things", TablePolicy(buckets=2, storage=storage)
    )
    first = {f"k{n}": row for n, row in enumerate(rows)}
    changed = {f"k{n}": row for n, row in enumerate(reversed(rows)) if n % 2 == 0}
    loaded, appended = (table_rows(spark, schema, of, seq=n) for n, of in enumerate((first, changed)))
    table.write(loaded, RECORDED)
    assert _texts(table.read().select(schema.names)) == _texts(loaded)
    table.upsert(appended, RECORDED)
    expected = _texts(loaded.where(~F.col(RECORD_KEY).isin(*changed)).unionByName(appended))
    assert _texts(table.read().select(schema.names)) == expected
    if storage == "merge_on_read":
        table.compact()
        assert _texts(table.read().select(schema.names)) == expected


_SHELVES = ("plain", "a/b=c", "50% &+ä", None)


@pytest.mark.parametrize("storage", first_then_long(get_args(Storage)))
@pytest.mark.parametrize("partition_by", first_then_long([("shelf", "_partition"), (), ("shelf",)]))
def test_a_row_is_where_hudi_looks_for_it(
    spark: SparkSession, tmp_path: Path, storage: Storage, partition_by: tuple[str, ...]
) -> None:
    policy = TablePolicy(buckets=5, partition_by=partition_by, storage=storage)
    table = HudiTable(spark, str(tmp_path / "silver"), "things", policy)

    def rows(keys: Iterable[int], note: str) -> dict[str, tuple[str | None, str]]:
        return {f'{{"id":{key}}}': (_SHELVES[key % len(_SHELVES)], note) for key in keys}

    loaded = rows(range(40), "loaded")
    table.write(table_rows(spark, NOTED, loaded, seq=1), RECORDED)
    assert _notes(table) == loaded
    by_hudi = rows(range(10, 60), "hudi")
    upsert_by_hudi(table, table_rows(spark, NOTED, by_hudi, seq=2))
    appended = rows(range(20, 80), "appended")
    table.upsert(table_rows(spark, NOTED, appended, seq=3), RECORDED)
    deleted = rows(range(30, 50), "deleted")
    table.upsert(table_rows(spark, NOTED, deleted, seq=4, operation="d"), RECORDED)
    assert _notes(table) == {
        key: value for key, value in {**loaded, **by_hudi, **appended}.items() if key not in deleted
    }

    again = rows(range(80), "hudi again")
    upsert_by_hudi(table, table_rows(spark, NOTED, again, seq=5))
    assert _notes(table) == again


def test_a_commit_of_more_than_a_log_block_is_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1))
    table.write(table_rows(spark, NOTED, {"k0": (None, "first")}, seq=1), RECORDED)
    rows = {f"k{n}": (None, str(n) * 1_000_000) for n in range(10)}
    table.upsert(table_rows(spark, NOTED, rows, seq=2), RECORDED)
    assert _notes(table) == rows
    commit = last_commit(table)
    assert commit is not None
    assert (commit.rows_upserted, commit.rows_deleted) == (10, 0)


def test_a_commit_of_nothing_but_deletes_counts_them(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=2))
    rows = {f"k{n}": (None, "note") for n in range(10)}
    table.write(table_rows(spark, NOTED, rows, seq=1), RECORDED)
    gone = {key: rows[key] for key in list(rows)[:4]}
    table.upsert(table_rows(spark, NOTED, gone, seq=2, operation="d"), RECORDED)
    assert _notes(table) == {key: rows[key] for key in rows.keys() - gone.keys()}
    commit = last_commit(table)
    assert commit is not None
    assert (commit.rows_upserted, commit.rows_deleted) == (0, 4)


def test_a_write_builds_on_what_others_have_written_since(spark: SparkSession, tmp_path: Path) -> None:
    """A table object remembers what its last commit left."""
    path, policy = str(tmp_path / "silver"), TablePolicy(buckets=2)
    one, other = (HudiTable(spark, path, "things", policy) for _ in range(2))
    expected: dict[str, tuple[str | None, str]] = {}

    def write(table: HudiTable, note: str, *keys: int) -> None:
        rows: dict[str, tuple[str | None, str]] = {f"k{key}": (None, note) for key in keys}
        write = table.upsert if expected else table.write
        write(table_rows(spark, NOTED, rows, seq=len(expected) + 1), RECORDED)
        expected.update(rows)
        assert _notes(table) == expected

    write(one, "first", *range(10))
    write(one, "again", 0, 1)
    write(one, "and again", 1, 2, 10)
    write(other, "by another", 2, 3, 11)
    write(one, "after another", 3, 4, 12)
    other.compact()
    write(one, "after a compaction", 4, 5, 13)
    write(one, "at last", 5, 6, 14)


@pytest.mark.parametrize(
    ("tasks", "sorted_by", "found"),
    [(1, "note", "do not come together"), (2, RECORD_KEY, "has come to task")],
)
def test_rows_that_are_not_in_their_buckets_are_refused(
    spark: SparkSession, tmp_path: Path, tasks: int, sorted_by: str, found: str
) -> None:
    table = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=4))
    first = {f"k{n}": (None, "first") for n in range(20)}
    table.write(table_rows(spark, NOTED, first, seq=1), RECORDED)
    rows = table_rows(spark, NOTED, {f"k{n}": (None, f"note {n}") for n in range(20)}, seq=2)
    astray = rows.repartition(tasks).sortWithinPartitions(sorted_by)
    with pytest.raises(Py4JJavaError, match=found):
        table.upsert(astray, RECORDED, RowsInBuckets())
    assert _notes(table) == first


def _texts(rows: DataFrame) -> list[str]:
    """Return the rows as texts, because a NaN does not equal itself and a map has no order."""
    return sorted(
        str([sorted(value.items()) if isinstance(value, dict) else value for value in row])
        for row in rows.collect()
    )


def _notes(table: HudiTable) -> dict[str, tuple[str | None, str]]:
    rows = table.read().select(RECORD_KEY, "shelf", "note").collect()
    assert len({row[RECORD_KEY] for row in rows}) == len(rows)
    return {row[RECORD_KEY]: (row["shelf"], row["note"]) for row in rows}
