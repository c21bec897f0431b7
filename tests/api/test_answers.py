"""Each value that DuckDB can answer is shown and written, also where Python or Parquet lacks its type."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tributary.api.answer_files import AnswerForm, NotWritten, write_answer
from tributary.api.sql import Limits, query_arrow
from tributary.api.values import rows_of

ODD_VALUES = query_arrow(
    {},
    """
    SELECT DATE '0044-03-15 (BC)' AS ides, DATE 'infinity' AS never, TIMESTAMP '294246-01-01' AS late,
           INTERVAL 3 DAY AS pause, union_value(k := 1) AS one_of, [INTERVAL 1 DAY] AS pauses,
           NULL AS nothing, 'a'::ENUM('a', 'b') AS choice, 170141183460469231731687303715884105727 AS large,
           {'a': 'é'} AS part
    """,
    Limits(seconds=60, memory="1GB"),
)


def test_a_value_that_python_lacks_is_shown_as_text() -> None:
    ((ides, never, late, pause, *_),) = rows_of(ODD_VALUES)
    assert (ides, never, late, pause) == ("0044-03-15 (BC)", "infinity", "294246-01-01 00:00:00", "3 days")


def test_an_answer_with_any_values_can_be_saved_as_parquet(tmp_path: Path) -> None:
    write_answer(ODD_VALUES, "parquet", tmp_path / "answer.parquet")
    found = query_arrow({}, f"FROM '{tmp_path / 'answer.parquet'}'")
    assert found.column_names == ODD_VALUES.column_names
    ((ides, _, late, pause, one_of, pauses, nothing, choice, *_),) = rows_of(found)
    assert (ides, late, pause, one_of, pauses, nothing, choice) == (
        "0044-03-15 (BC)",
        "294246-01-01 00:00:00",
        "3 days",
        "1",
        "[1 day]",
        None,
        "a",
    )


def test_an_answer_with_any_values_can_be_saved_as_csv(tmp_path: Path) -> None:
    write_answer(ODD_VALUES, "csv", tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text().splitlines()[1] == (
        "0044-03-15 (BC),infinity,294246-01-01 00:00:00,3 days,1,[1 day],,a,"
        "170141183460469231731687303715884105727,{'a': é}"
    )


def test_csv_has_titles_and_quotes_and_tells_null_from_an_empty_text(tmp_path: Path) -> None:
    found = pa.table({"a": [1, None], 'b"': ["x,y", ""], "<b>": [None, "z"]})
    write_answer(found, "csv", tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text().splitlines() == ['a,"b""",<b>', '1,"x,y",', ',"",z']


def test_two_columns_may_have_one_name(tmp_path: Path) -> None:
    found = query_arrow({}, "SELECT 1 AS a, 2 AS a")
    write_answer(found, "csv", tmp_path / "answer.csv")
    write_answer(found, "parquet", tmp_path / "answer.parquet")
    assert (tmp_path / "answer.csv").read_text().splitlines()[1] == "1,2"
    assert list(rows_of(parquet.ParquetFile(tmp_path / "answer.parquet").read())) == [(1, 2)]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_that_cannot_be_written_is_told_as_such(tmp_path: Path, form: AnswerForm) -> None:
    with pytest.raises(NotWritten, match="the file cannot be written"):
        write_answer(ODD_VALUES, form, tmp_path / "no such folder" / "answer")
