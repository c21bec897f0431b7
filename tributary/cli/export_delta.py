"""Write rows as a Delta table: a folder with Parquet files and Delta's log of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from tributary.cli.export_files import NotExported, already_there
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    import pyarrow as pa


class DeltaMissing(TributaryError):
    """The package that writes Delta tables is not installed."""


def write_delta(found: pa.Table, folder: Path, *, overwrite: bool = False) -> None:
    """Write the rows to a Delta table in this folder. Raises NotExported and DeltaMissing.

    With `overwrite`, the rows become the next version of a Delta table that is there. Its readers see the old
    rows or the new ones, and Delta keeps the old version.
    """
    try:
        from deltalake import DeltaTable, write_deltalake
    except ImportError as error:
        raise DeltaMissing(
            "Delta tables need the package deltalake", remedy="Run pip install 'tributary[delta]'."
        ) from error
    draft: Path | None = None
    try:
        if folder.exists():
            if not overwrite:
                raise already_there(folder)
            if not DeltaTable.is_deltatable(str(folder)):
                raise NotExported(
                    "only a Delta table can be replaced by one", where=str(folder), found="something else"
                )
            write_deltalake(folder, found, mode="overwrite", schema_mode="overwrite")
            return
        draft = Path(mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        write_deltalake(draft, found)
        draft.chmod(0o755)
        draft.replace(folder)
    except NotExported:
        raise
    except Exception as error:  # deltalake raises Exception itself for a type that Delta does not have.
        raise NotExported(
            "the Delta table cannot be written", where=str(folder), found=str(error).partition("\n")[0]
        ) from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
