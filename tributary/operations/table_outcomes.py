"""The tables with errors, from the outcome files that each run writes next to a table's quarantine."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from spark_app.run.outcome import OUTCOME_FILE, Outcome
from tributary.api.tables import LakeTable, read_table_folders
from tributary.contract.table_name import TableName
from tributary.operations.sourced_lake import OpenedLake
from tributary.operations.text_files import read_text

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

_READERS = 8


def read_outcomes(opened: OpenedLake) -> Mapping[TableName, Outcome]:
    """Return the outcomes of the tables that have errors. Raises PipelineDown."""
    lake = opened.open_lake
    filesystem = lake.files.filesystem
    tables = read_table_folders(filesystem, lake.lake.names, lake.quarantine)
    with ThreadPoolExecutor(_READERS) as pool:
        outcomes = pool.map(lambda table: _read_outcome(filesystem, table), tables)
        return {
            table.name: outcome
            for table, outcome in zip(tables, outcomes, strict=True)
            if outcome is not None
        }


def _read_outcome(filesystem: S3FileSystem, table: LakeTable) -> Outcome | None:
    text = read_text(filesystem, f"{table.path}/{OUTCOME_FILE}")
    return None if text is None else Outcome.from_json(text)
