"""How many events of each table are in quarantine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tributary.api.lake_files import told_unreadable
from tributary.api.open_lake import OpenLake
from tributary.api.quarantine import count_quarantine
from tributary.api.tables import read_table_folders
from tributary.contract.table_name import TableName

_READERS = 8


@dataclass
class QuarantineCounts:
    """Counts the events in quarantine again and again, but at most every some seconds."""

    seconds: float
    _counts: Mapping[TableName, int] = field(default_factory=dict)
    _until: float = 0.0

    def read(self, opened: OpenLake) -> Mapping[TableName, int]:
        """Return the number of events of each table that has a folder in quarantine."""
        if time.monotonic() >= self._until:
            self._counts = read_quarantine_counts(opened)
            self._until = time.monotonic() + self.seconds
        return self._counts


def read_quarantine_counts(opened: OpenLake) -> Mapping[TableName, int]:
    """Return the number of events of each table that has a folder in quarantine. Raises LakeUnreadable."""
    filesystem = opened.files.filesystem
    with told_unreadable(f"s3://{opened.quarantine}"):
        folders = read_table_folders(filesystem, opened.lake.names, opened.quarantine)
        with ThreadPoolExecutor(_READERS) as pool:
            counts = pool.map(lambda table: count_quarantine(filesystem, table.path), folders)
            return {table.name: count for table, count in zip(folders, counts, strict=True)}
