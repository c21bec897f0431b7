"""A file of rows holds every value, is whole or not there, and replaces nothing by accident."""

from __future__ import annotations

import json
import stat
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from tributary.api.sql import QueryError, query_arrow
from tributary.cli.commands.export import as_in_the_source, query_for
from tributary.cli.export_files import Form, NotExported, write_rows
from tributary.contract.table_name import TableName

NAME = TableName("shop", "public", 'odd"name')
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "word": pa.array(['x,"y"\nz', "", None]),
        "price": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(38, 2)),
        "at": pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
        "day": pa.array([date(2026, 1, 2), None, None]),
        "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
        "raw": pa.array([b"\x00\xff", b"", None]),
        "ratio": pa.array([float("nan"), 0.5, None]),
        "_op": ["c", "u", "c"],
        "_deleted": [False, True, None],
    }
)


def test_parquet_holds_every_value_with_its_type(tmp_path: Path) -> None:
    write_rows(ROWS, "parquet", tmp_path / "rows.parquet")
    found = parquet.read_table(tmp_path / "rows.parquet")
    assert found.schema == ROWS.schema
    assert found.drop(["ratio"]).equals(ROWS.drop(["ratio"]))


def test_json_has_a_line_for_each_row_with_exact_values(tmp_path: Path) -> None:
    write_rows(ROWS, "json", tmp_path / "rows.json")
    lines = [json.loads(line) for line in (tmp_path / "rows.json").read_text().splitlines()]
    assert [line["id"] for line in lines] == [1, 2, 3]
    assert lines[0] == {
        "id": 1,
        "word": 'x,"y"\nz',
        "price": "1.50",
        "at": "2026-01-02T03:04:05.000006+00:00",
        "day": "2026-01-02",
        "tags": ["a", None],
        "raw": "AP8=",
        "ratio": "nan",
        "_op": "c",
        "_deleted": False,
    }


def test_csv_tells_null_from_an_empty_text_and_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_rows(ROWS, "csv", path)
    assert path.read_text().splitlines()[0] == "id,word,price,at,day,tags,raw,ratio,_op,_deleted"
    with duckdb.connect() as engine:
        query = (
            f"SELECT id, word, price FROM read_csv('{path}', all_varchar = true, allow_quoted_nulls = false)"
        )
        assert engine.sql(query).fetchall() == [
            ("1", 'x,"y"\nz', "1.50"),
            ("2", "", None),
            ("3", None, "-0.01"),
        ]


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_a_file_is_replaced_only_if_somebody_wants_it(tmp_path: Path, form: Form) -> None:
    path = tmp_path / "rows"
    path.write_text("mine")
    with pytest.raises(NotExported, match="--overwrite"):
        write_rows(ROWS, form, path)
    assert path.read_text() == "mine"
    write_rows(ROWS, form, path, overwrite=True)
    assert path.read_bytes() != b"mine"
    assert [one.name for one in tmp_path.iterdir()] == ["rows"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(NotExported, match="cannot be written"):
        write_rows(ROWS, "csv", tmp_path / "no such folder" / "rows.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotExported, match="cannot be written"):
        write_rows(ROWS, "json", tmp_path / "folder", overwrite=True)
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_a_condition_chooses_rows() -> None:
    found = query_arrow({NAME: ROWS}, query_for(NAME, "id > 1 OR false -- the rest"))
    assert found["id"].to_pylist() == [2, 3]
    assert query_arrow({NAME: ROWS}, query_for(NAME, None)).column_names == ROWS.column_names
    with pytest.raises(QueryError):
        query_arrow({NAME: ROWS}, query_for(NAME, "no_such_column = 1"))


def test_plain_rows_are_those_of_the_source() -> None:
    found = as_in_the_source(ROWS)
    assert found["id"].to_pylist() == [1, 3]
    assert found.column_names == ROWS.column_names[:-2]
    hard = ROWS.drop_columns(["_deleted"])
    assert as_in_the_source(hard)["id"].to_pylist() == [1, 2, 3]
