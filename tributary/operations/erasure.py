"""Read the keys to erase, and search their remains in every file of bronze, silver and the quarantine."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tributary.api.open_lake import OpenLake
from tributary.api.quarantine import read_quarantine
from tributary.api.row_events import NotAKey, key_of, parse_key
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

    from spark_app.reports import Erased

Key = Mapping[str, str]
"""A text for each column of a key. The only column of a key may have an empty name."""


@dataclass(frozen=True)
class Remains:
    """The remains of erased keys.

    events       in bronze's files, also in files that no snapshot of bronze has
    files        silver's files with a row of a key
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


@dataclass(frozen=True)
class Erasure:
    """An erasure that has ended, and where the keys still are.

    kafka_until     when Kafka's last event of the keys goes at the latest
    versions_until  how long S3 keeps noncurrent versions of removed files. None: it keeps none
    remains         None: the search failed
    purged          how many noncurrent versions were removed; None: nobody asked for it, or it failed
    failures        what failed after the keys were erased
    """

    erased: Erased
    remains: Remains | None
    kafka_until: datetime
    versions_until: datetime | None = None
    purged: int | None = None
    failures: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Tell whether no file holds a key any more, and nothing failed."""
        return self.remains is not None and self.remains.is_empty and not self.failures


def keys_of_texts(texts: Iterable[str]) -> tuple[Key, ...]:
    """Return keys that a person wrote (`parse_key`). Raises NotAKey."""
    parsed = (parse_key(text) for text in texts)
    return tuple({"": one} if isinstance(one, str) else dict(one) for one in parsed)


def read_keys(file: Path) -> tuple[Key, ...]:
    """Return the keys in a CSV file whose first line names the key's columns. Raises NotAKey and OSError."""
    with file.open(newline="", encoding="utf-8-sig") as lines:
        rows = csv.reader(lines)
        names = [name.strip() for name in next(rows, [])]
        if not names or not all(names) or len(set(names)) != len(names):
            raise NotAKey(
                "a file of keys without a line of column names",
                where=str(file),
                found=", ".join(names) or "no line",
                expected="a first line such as id, or order,line",
            )
        keys = []
        for row in rows:
            if not row:
                continue
            if len(row) != len(names):
                raise NotAKey(
                    "a line that is no key",
                    where=f"{file}, line {rows.line_num}",
                    found=f"{len(row)} values",
                    expected=f"{len(names)} values, for {', '.join(names)}",
                )
            keys.append(dict(zip(names, row, strict=True)))
    if not keys:
        raise NotAKey("a file without keys", where=str(file), expected="one key on each line after the first")
    return tuple(keys)


def search(lake: OpenLake, table: TableName, keys: Sequence[Key]) -> Remains:
    """Search for keys with the names of their columns. Each file is read once."""
    filesystem, path = lake.files.filesystem, lake.lake.names.table_path(table)
    files, unsearched, searched = _in_silver(filesystem, f"{lake.silver}/{path}", keys)
    wanted = {frozenset(key.items()) for key in keys}
    payloads = (
        lake.payloads.read(event.key) for event in read_quarantine(filesystem, f"{lake.quarantine}/{path}")
    )
    return Remains(
        events=lake.count_events(str(table), keys),
        files=files,
        unsearched=unsearched,
        quarantined=sum(isinstance(payload, dict) and key_of(payload) in wanted for payload in payloads),
        searched=searched,
    )


def _in_silver(
    filesystem: S3FileSystem, path: str, keys: Sequence[Key]
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow.fs import FileSelector

    found: list[str] = []
    listed = filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    data = [info.path for info in listed if info.is_file and "/.hoodie/" not in info.path]
    parquet = [file for file in data if file.endswith(".parquet")]
    columns = sorted({name for key in keys for name in key})
    wanted = {tuple(key.get(name) for name in columns) for key in keys}
    for file in parquet:
        rows = pq.read_table(file, columns=columns, filesystem=filesystem, partitioning=None)
        texts = (pc.cast(rows.column(name), "string").to_pylist() for name in columns)
        if not wanted.isdisjoint(zip(*texts, strict=True)):
            found.append(file)
    return tuple(found), tuple(file for file in data if ".log." in file), len(parquet)
