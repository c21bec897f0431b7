"""Write the rows of an answer to a file: CSV or Parquet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tributary.api.values import texts_of
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    import pyarrow as pa

AnswerForm = Literal["csv", "parquet"]


class NotWritten(TributaryError):
    """A file of rows that cannot be written."""


def write_answer(found: pa.Table, form: AnswerForm, path: Path) -> None:
    """Write all rows. Raises NotWritten.

    csv      a line of titles, and a line for each row; NULL is nothing between commas, an empty text is `""`
    parquet  a column of a type that the format lacks, such as an interval, becomes text
    """
    import duckdb
    import pyarrow as pa

    try:
        _WRITERS[form](found, path)
    except (OSError, duckdb.Error, pa.ArrowException) as error:
        raise NotWritten("the file cannot be written", where=str(path), found=str(error)) from error


def _write_csv(found: pa.Table, path: Path) -> None:
    import duckdb

    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.from_arrow(found).write_csv(str(path), header=True)


def _write_parquet(found: pa.Table, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    for number, field in enumerate(found.schema):
        if not _is_in_parquet(field):
            texts = pa.chunked_array([pa.array(texts_of(found.column(number)), pa.string())])
            found = found.set_column(number, field.name, texts)
    parquet.write_table(found, path, compression="zstd")


_WRITERS: Mapping[AnswerForm, Callable[[pa.Table, Path], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
}


def _is_in_parquet(field: pa.Field) -> bool:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        parquet.write_table(pa.schema([field]).empty_table(), BytesIO())
    except pa.ArrowNotImplementedError:
        return False
    return True
