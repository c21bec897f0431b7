"""What the console needs of a lake, wherever the lake is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tributary.api.open_lake import OpenLake
from tributary.console.actions import Actions
from tributary.console.view import LakeView, OpenAlert
from tributary.contract.lake import Lake
from tributary.contract.remedies import Words
from tributary.contract.table_name import TableName
from tributary.operations.logs import LogEntry


class ShownLake(Protocol):
    """A lake that the console shows. Any thread may call these methods.

    lake_file      the boards are in the same folder
    seconds        between two looks at the lake
    words          how to word remedies
    first_log      the part whose log the page of logs shows first
    actions        what the buttons do; None: nothing may be changed from here
    has_alarms     alarms of its own take the place of `[alerts]`
    """

    @property
    def lake(self) -> Lake: ...

    @property
    def lake_file(self) -> Path: ...

    @property
    def seconds(self) -> float: ...

    @property
    def words(self) -> Words: ...

    @property
    def first_log(self) -> str: ...

    @property
    def actions(self) -> Actions | None: ...

    @property
    def has_alarms(self) -> bool: ...

    def open(self) -> OpenLake:
        """Open the lake to read its tables. Raises the errors of `open_lake`."""

    def read_view(self) -> LakeView:
        """Read the state of all parts and tables. What cannot be read is in the view, not an error."""

    def source_types(self, table: TableName) -> Mapping[str, str]:
        """Return the types of a table's columns in its database, by name, as far as it can be asked."""

    def open_alerts(self) -> Sequence[OpenAlert]:
        """Return the alerts that are not over. Raises TributaryError."""

    def log_parts(self) -> Sequence[str]:
        """Return the names of the parts that have a log."""

    def read_log(self, part: str) -> Sequence[LogEntry]:
        """Return the last entries of a part's log, oldest first, without secrets."""
