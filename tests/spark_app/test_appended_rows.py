"""Rows that are appended to a merge-on-read table's logs are those that readers and Hudi find there."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
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

from contract.lake import TablePolicy
from spark_app.hudi import HudiTable
from spark_app.ledger import Ledger
from spark_app.table_columns import APP_COLUMNS, RECORD_KEY

TOPIC = "things"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)

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
_EVERY_TYPE = StructType(
    [*APP_COLUMNS.fields, *(StructField(f"c{n}", data_type) for n, (data_type, _) in enumerate(_VALUES))]
)
_ROW = st.tuples(*(st.none() | values for _, values in _VALUES))


@settings(
    max_examples=8,
    deadline=None,
    # Each example is two commits; to shrink one takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(rows=st.lists(_ROW, min_size=1, max_size=40))
def test_values_of_every_type_are_read_as_they_were_written(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    table = HudiTable(spark, str(tmp_path_factory.mktemp("silver")), "things", TablePolicy(buckets=2))
    keyed = {f"k{n}": row for n, row in enumerate(rows)}
    first = {key: tuple(None for _ in _VALUES) for key in keyed}
    table.write(_frame(spark, _EVERY_TYPE, first, seq=1), Ledger(TOPIC))
    written = _frame(spark, _EVERY_TYPE, keyed, seq=2)
    table.write(written, Ledger(TOPIC), is_there=True)
    assert _texts(table.read().select(written.columns)) == _texts(written)


_NOTED = StructType(
    [*APP_COLUMNS.fields, StructField("shelf", StringType()), StructField("note", StringType())]
)
_SHELVES = ("plain", "a/b=c", "50% &+ä", None)


@pytest.mark.parametrize("partition_by", [(), ("shelf",), ("shelf", "_partition")])
def test_a_row_is_where_hudi_looks_for_it(
    spark: SparkSession, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    policy = TablePolicy(buckets=5, partition_by=partition_by)
    table = HudiTable(spark, str(tmp_path / "silver"), "things", policy)

    def rows(keys: Iterable[int], note: str) -> dict[str, tuple[str | None, str]]:
        return {f'{{"id":{key}}}': (_SHELVES[key % len(_SHELVES)], note) for key in keys}

    by_hudi = rows(range(40), "hudi")
    table.write(_frame(spark, _NOTED, by_hudi, seq=1), Ledger(TOPIC))
    appended = rows(range(20, 80), "appended")
    table.write(_frame(spark, _NOTED, appended, seq=2), Ledger(TOPIC), is_there=True)
    deleted = rows(range(30, 50), "deleted")
    table.write(_frame(spark, _NOTED, deleted, seq=3, operation="d"), Ledger(TOPIC), is_there=True)
    assert _notes(table) == {
        key: value for key, value in {**by_hudi, **appended}.items() if key not in deleted
    }

    again = rows(range(80), "hudi again")
    table.write(_frame(spark, _NOTED, again, seq=4), Ledger(TOPIC))
    assert _notes(table) == again


def test_a_commit_of_more_than_a_log_block_is_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=1))
    table.write(_frame(spark, _NOTED, {"k0": (None, "first")}, seq=1), Ledger(TOPIC))
    rows = {f"k{n}": (None, str(n) * 1_000_000) for n in range(10)}
    table.write(_frame(spark, _NOTED, rows, seq=2), Ledger(TOPIC), is_there=True)
    assert _notes(table) == rows
    commit = table.last_commit()
    assert commit is not None
    assert (commit.rows_upserted, commit.rows_deleted) == (10, 0)


def test_a_commit_of_nothing_but_deletes_counts_them(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable(spark, str(tmp_path / "silver"), "things", TablePolicy(buckets=2))
    rows = {f"k{n}": (None, "note") for n in range(10)}
    table.write(_frame(spark, _NOTED, rows, seq=1), Ledger(TOPIC))
    gone = {key: rows[key] for key in list(rows)[:4]}
    table.write(_frame(spark, _NOTED, gone, seq=2, operation="d"), Ledger(TOPIC), is_there=True)
    assert _notes(table) == {key: rows[key] for key in rows.keys() - gone.keys()}
    commit = table.last_commit()
    assert commit is not None
    assert (commit.rows_upserted, commit.rows_deleted) == (0, 4)


def test_what_others_have_written_meanwhile_is_built_on(spark: SparkSession, tmp_path: Path) -> None:
    """A table object remembers what its last commit has left."""
    path, policy = str(tmp_path / "silver"), TablePolicy(buckets=2)
    one, other = (HudiTable(spark, path, "things", policy) for _ in range(2))
    expected: dict[str, tuple[str | None, str]] = {}

    def write(table: HudiTable, note: str, *keys: int) -> None:
        rows: dict[str, tuple[str | None, str]] = {f"k{key}": (None, note) for key in keys}
        table.write(
            _frame(spark, _NOTED, rows, seq=len(expected) + 1), Ledger(TOPIC), is_there=bool(expected)
        )
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
    table.write(_frame(spark, _NOTED, first, seq=1), Ledger(TOPIC))
    rows = _frame(spark, _NOTED, {f"k{n}": (None, f"note {n}") for n in range(20)}, seq=2)
    astray = rows.repartition(tasks).sortWithinPartitions(sorted_by)
    with pytest.raises(Py4JJavaError, match=found):
        table.write(astray, Ledger(TOPIC), is_there=True, are_in_buckets=True)
    assert _notes(table) == first


def _frame(
    spark: SparkSession,
    schema: StructType,
    rows: dict[str, tuple[Any, ...]],
    *,
    seq: int,
    operation: str = "u",
) -> DataFrame:
    return spark.createDataFrame(
        [(key, operation, seq, MOMENT, TOPIC, 0, seq, seq, *row) for key, row in rows.items()], schema
    )


def _texts(rows: DataFrame) -> list[str]:
    """Of each row; a NaN is none to itself, and a map has no order."""
    return sorted(
        str([sorted(value.items()) if isinstance(value, dict) else value for value in row])
        for row in rows.collect()
    )


def _notes(table: HudiTable) -> dict[str, tuple[str | None, str]]:
    rows = table.read().select(RECORD_KEY, "shelf", "note").collect()
    assert len({row[RECORD_KEY] for row in rows}) == len(rows)
    return {row[RECORD_KEY]: (row["shelf"], row["note"]) for row in rows}
