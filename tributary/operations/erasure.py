"""Read the keys to erase, and search their remains in every file of bronze, silver and the quarantine.

Rows and events hold their keys in two forms: what connectors read has them in columns and as JSON, and items
have them in the records themselves."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from tributary.api.event_payloads import EventPayloads
from tributary.api.open_lake import OpenLake
from tributary.api.quarantine import QuarantinedEvent, read_quarantine
from tributary.api.row_events import NotAKey, key_of, parse_key
from tributary.contract.errors import TributaryError
from tributary.contract.item_stream import DELETED_KEYS_FOLDER
from tributary.contract.lake import TablePolicy
from tributary.contract.partitions import is_hash
from tributary.contract.source import Source
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import S3FileSystem

    from spark_app.reports import Erased
    from spark_app.wire.items.wanted_keys import WantedKeys

_RECORD_KEY = "_key"
"""The column of silver with a row's record key (`spark_app.columns.app_columns`)."""

Key = Mapping[str, str]
"""A text for each column of a key. The only column of a key may have an empty name."""


class CannotErase(TributaryError):
    """Keys of the table cannot be erased. Nothing was changed."""


@dataclass(frozen=True)
class Remains:
    """The remains of erased keys.

    events       in bronze's files, also in files that no snapshot of bronze has
    files        silver's files with a row of a key
    unsearched   silver's log files, which only Hudi reads; there are none right after an erasure
    quarantined  events in quarantine
    searched     how many files of silver were searched
    remembered   keys that the app remembers as deleted
    in_timeline  the columns of the keys whose values Hudi's timeline keeps, because they are names of folders
    """

    events: int
    files: tuple[str, ...]
    unsearched: tuple[str, ...]
    quarantined: int
    searched: int
    remembered: int = 0
    in_timeline: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.events or self.files or self.unsearched or self.quarantined or self.remembered)


@dataclass(frozen=True)
class Log:
    """What brought the events to the lake. It keeps its copies of them until its retention ends.

    name   as a sentence begins with it
    until  when it has deleted the last event of the keys, at the latest
    """

    name: str
    until: datetime
    is_kafka: bool = True


@dataclass(frozen=True)
class Erasure:
    """An erasure that has ended, and where the keys still are.

    log             what brought the events, and until when it keeps them
    versions_until  how long S3 keeps noncurrent versions of removed files. None: it keeps none
    remains         None: the search failed
    purged          how many noncurrent versions were removed; None: nobody asked for it, or it failed
    failures        what failed after the keys were erased
    """

    erased: Erased
    remains: Remains | None
    log: Log
    versions_until: datetime | None = None
    purged: int | None = None
    failures: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Tell whether no file holds a key any more, and nothing failed."""
        return self.remains is not None and self.remains.is_empty and not self.failures


def log_of(source: Source, erased: Erased, kafka_retention: timedelta, now: datetime) -> Log:
    """Return what brought the events of a source. `kafka_retention` is how long Kafka keeps its events."""
    stream = source.item_stream
    if stream is None or erased.in_stream_until is None:
        return Log("Kafka", now + kafka_retention)
    until = datetime.fromisoformat(erased.in_stream_until)
    return Log(f"The stream {stream.name}", until, is_kafka=False)


def one_table(text: str, found: Sequence[TableName]) -> TableName:
    """Return the only table that a text stands for. Raises CannotErase."""
    if len(found) != 1:
        raise CannotErase(
            "Keys can be erased in one table at a time",
            where=text,
            found=", ".join(map(str, found)),
            expected="the name of one table",
        )
    return found[0]


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
    is_of_items = lake.lake.source(table.source).item_stream is not None
    wanted = _item_keys(keys, table) if is_of_items else _ConnectorKeys(keys, lake.payloads)
    files, unsearched, searched = _in_silver(filesystem, f"{lake.silver}/{path}", wanted)
    events = read_quarantine(filesystem, f"{lake.quarantine}/{path}")
    return Remains(
        events=lake.count_events(str(table), keys),
        files=files,
        unsearched=unsearched,
        quarantined=sum(map(wanted.is_of, events)),
        searched=searched,
        remembered=wanted.count_deleted(filesystem, f"{lake.quarantine}/{DELETED_KEYS_FOLDER}/{path}"),
        in_timeline=_in_timeline(lake.lake.policy(table), keys),
    )


def _in_timeline(policy: TablePolicy, keys: Sequence[Key]) -> tuple[str, ...]:
    """Return the key's columns, as far as the names of the table's folders tell their values or parts."""
    in_folders = {each.column for each in policy.partitions if not is_hash(each)}
    return tuple(sorted(in_folders & {name for key in keys for name in key}))


class _SearchedKeys(Protocol):
    """Keys to search for. `columns` are those of a row in silver that hold its key."""

    @property
    def columns(self) -> Sequence[str]: ...

    def count(self, rows: pa.Table) -> int:
        """Return how many rows with these columns have one of the keys."""

    def is_of(self, event: QuarantinedEvent) -> bool:
        """Return whether the event has one of the keys."""

    def count_deleted(self, filesystem: S3FileSystem, folder: str) -> int:
        """Return how many of the deleted keys in a folder of the app's are among these."""


@dataclass(frozen=True)
class _ConnectorKeys:
    """Keys of rows that a connector reads: an event has its key beside its row."""

    keys: Sequence[Key]
    payloads: EventPayloads

    @property
    def columns(self) -> Sequence[str]:
        return sorted({name for key in self.keys for name in key})

    def count(self, rows: pa.Table) -> int:
        import pyarrow.compute as pc

        texts = (pc.cast(rows.column(name), "string").to_pylist() for name in self.columns)
        wanted = {tuple(key.get(name) for name in self.columns) for key in self.keys}
        return sum(key in wanted for key in zip(*texts, strict=True))

    def is_of(self, event: QuarantinedEvent) -> bool:
        payload = self.payloads.read(event.key)
        return isinstance(payload, dict) and key_of(payload) in self._wanted

    def count_deleted(self, filesystem: S3FileSystem, folder: str) -> int:  # noqa: ARG002
        """Return 0: Kafka keeps the order of changes, so the app remembers no deleted key."""
        return 0

    @cached_property
    def _wanted(self) -> Set[frozenset[tuple[str, str]]]:
        return {frozenset(key.items()) for key in self.keys}


def _item_keys(keys: Sequence[Key], table: TableName) -> _ItemKeys:
    from spark_app.wire.items.wanted_keys import WantedKeys  # It takes PySpark's types.

    return _ItemKeys(WantedKeys(tuple(keys), table.table))


@dataclass(frozen=True)
class _ItemKeys:
    """Keys of items: a record has its key in itself, and a row in its record key."""

    columns: ClassVar[Sequence[str]] = (_RECORD_KEY,)

    wanted: WantedKeys

    def count(self, rows: pa.Table) -> int:
        return self._count(rows.column(_RECORD_KEY).to_pylist())

    def is_of(self, event: QuarantinedEvent) -> bool:
        return self.wanted.in_record(event.value) is not None

    def count_deleted(self, filesystem: S3FileSystem, folder: str) -> int:
        import pyarrow.parquet as pq

        files = [file for file in _files(filesystem, folder) if file.endswith(".parquet")]
        read = (
            pq.read_table(file, columns=["key"], filesystem=filesystem, partitioning=None) for file in files
        )
        return sum(self._count(rows.column("key").to_pylist()) for rows in read)

    def _count(self, record_keys: Iterable[str]) -> int:
        return sum(self.wanted.in_record_key(key) is not None for key in record_keys)


def _in_silver(
    filesystem: S3FileSystem, path: str, keys: _SearchedKeys
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    import pyarrow.parquet as pq

    data = [file for file in _files(filesystem, path) if "/.hoodie/" not in file]
    parquet = [file for file in data if file.endswith(".parquet")]
    found = [
        file
        for file in parquet
        if keys.count(
            pq.read_table(file, columns=list(keys.columns), filesystem=filesystem, partitioning=None)
        )
    ]
    return tuple(found), tuple(file for file in data if ".log." in file), len(parquet)


def _files(filesystem: S3FileSystem, folder: str) -> list[str]:
    from pyarrow.fs import FileSelector

    listed = filesystem.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
    return [info.path for info in listed if info.is_file]
