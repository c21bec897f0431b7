"""Write rows to a file: Parquet, CSV, or one JSON object a line. A file is there as a whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Literal

from tributary.api.answer_files import NotWritten, write_answer
from tributary.api.values import rows_of
from tributary.cli.rendering import as_json
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    import pyarrow as pa

Form = Literal["parquet", "csv", "json"]

_ROWS_AT_ONCE = 50_000


class NotExported(TributaryError):
    """A file of rows that cannot be written, or that is there already."""


def write_rows(found: pa.Table, form: Form, path: Path, *, overwrite: bool = False) -> None:
    """Write the rows to the file. Raises NotExported."""
    if path.exists() and not overwrite:
        raise already_there(path)
    draft: Path | None = None
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            draft = Path(file.name)
        if form == "json":
            _write_json(found, draft)
        else:
            write_answer(found, form, draft)
        draft.chmod(0o666 & ~_umask())
        draft.replace(path)
    except (OSError, NotWritten) as error:
        raise NotExported("the file cannot be written", where=str(path), found=str(error)) from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def already_there(path: Path) -> NotExported:
    return NotExported(
        "there is such a file already",
        where=str(path),
        remedy="Name another one with --out, or write over it with --overwrite.",
    )


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current


def _write_json(found: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, found.num_rows, _ROWS_AT_ONCE):
            for row in rows_of(found.slice(start, _ROWS_AT_ONCE)):
                values = dict(zip(found.column_names, row, strict=True))
                file.write(json.dumps(as_json(values), ensure_ascii=False) + "\n")
