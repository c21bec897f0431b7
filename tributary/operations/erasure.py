"""Search a key's remains in every file of bronze, silver and the quarantine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tributary.api.open_lake import OpenLake
from tributary.api.quarantine import read_quarantine
from tributary.api.row_events import is_of, parse_key
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


@dataclass(frozen=True)
class Remains:
    """The remains of a key.

    events       in bronze's files, also in files that no snapshot of bronze has
    files        silver's files with a row of the key
    unsearched   silver's log files, which only Hudi reads; there are none right after an erasure
    quarantined  events in quarantine
    searched     how many files of silver were searched
    """

    events: int
    files: tuple[str, ...]
    unsearched: tuple[str, ...]
    quarantined: int
    searched: int

    @property
    def is_empty(self) -> bool:
        return not (self.events or self.files or self.unsearched or self.quarantined)


def search(lake: OpenLake, table: TableName, key: str, names: Mapping[str, str]) -> Remains:
    """Search for the key, as a person wrote it. `names` is the same key with the names of its columns."""
    filesystem, path = lake.files.filesystem, lake.lake.names.table_path(table)
    files, unsearched, searched = _in_silver(filesystem, f"{lake.silver}/{path}", names)
    quarantined = read_quarantine(filesystem, f"{lake.quarantine}/{path}")
    return Remains(
        events=len(lake.row_events(str(table), key)),
        files=files,
        unsearched=unsearched,
        quarantined=sum(is_of(lake.payloads.read(event.key), parse_key(key)) for event in quarantined),
        searched=searched,
    )


def _in_silver(
    filesystem: S3FileSystem, path: str, key: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow.fs import FileSelector

    found: list[str] = []
    listed = filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    data = [info.path for info in listed if info.is_file and "/.hoodie/" not in info.path]
    parquet = [file for file in data if file.endswith(".parquet")]
    for file in parquet:
        rows = pq.read_table(file, columns=list(key), filesystem=filesystem, partitioning=None)
        for name, text in key.items():
            rows = rows.filter(pc.equal(pc.cast(rows.column(name), "string"), text))
        if rows.num_rows:
            found.append(file)
    return tuple(found), tuple(file for file in data if ".log." in file), len(parquet)
