"""The lake that the console shows, and the questions of each page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tributary.api.kept import Kept
from tributary.api.quarantine import QuarantinedEvent, read_quarantine
from tributary.api.row_events import RowEvent
from tributary.api.sql import Limits
from tributary.api.tables import read_table_folders
from tributary.console.actions import Actions
from tributary.console.board_answers import BoardAnswers
from tributary.console.jobs import Jobs
from tributary.console.shown_lake import ShownLake
from tributary.console.trends import Trends
from tributary.console.view import LakeView
from tributary.contract.errors import TributaryError
from tributary.contract.table_name import TableName
from tributary.operations.logs import Level, LogEntry, chosen

if TYPE_CHECKING:
    import pyarrow as pa

    from tributary.api.table import Table

QUERY_LIMITS = Limits(seconds=30, memory="1GB")
MOST_ROWS_SHOWN = 1000
_QUERIES_AT_A_TIME = 2


@dataclass(frozen=True)
class Console:
    """A lake, read when a page asks. `has_buttons`: the pages have buttons that change something."""

    shown: ShownLake
    has_buttons: bool = True
    jobs: Jobs = field(init=False)
    boards: BoardAnswers = field(init=False)
    trends: Trends = field(default_factory=Trends, init=False)
    _view: Kept[LakeView] = field(init=False)
    # So queries that run for long leave threads and memory to all pages.
    _questions: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_QUERIES_AT_A_TIME, "ask"), init=False, repr=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", Jobs(self.shown.words))
        object.__setattr__(self, "boards", BoardAnswers(self.shown.lake_file, self._answer))
        object.__setattr__(self, "_view", Kept(self._look, self.shown.seconds))

    def _look(self) -> LakeView:
        view = self.shown.read_view()
        self.trends.add(view)
        return view

    @property
    def actions(self) -> Actions | None:
        """What the buttons do, as far as it can be done now; None: there are no buttons."""
        return self.shown.actions if self.has_buttons else None

    async def view(self) -> LakeView:
        """Return the state of everything, at most some seconds old."""
        return await self._view.get()

    async def readable_tables(self) -> list[str]:
        """Return the names of the tables that have rows, also while nobody can tell their states."""
        view = await self.view()
        if view.problem is None:
            return [str(one.table) for one in view.tables if one.commit is not None]
        try:
            return await asyncio.to_thread(self._names)
        except TributaryError:
            return []  # The lake itself does not answer: the pipeline page says why.

    def _names(self) -> list[str]:
        return list(map(str, self.shown.open().names()))

    def table(self, name: str) -> Table:
        """Return a table to read. Raises UnknownTable, LakeUnreadable and PipelineDown."""
        return self.shown.open().table(name)

    async def quarantine(self) -> dict[TableName, tuple[QuarantinedEvent, ...]]:
        """Return the events in quarantine, by their tables. Raises LakeUnreadable and PipelineDown."""
        return await asyncio.to_thread(self._read_quarantine)

    def _read_quarantine(self) -> dict[TableName, tuple[QuarantinedEvent, ...]]:
        lake = self.shown.open()
        filesystem = lake.files.filesystem
        tables = read_table_folders(filesystem, lake.lake.names, lake.quarantine)
        found = {table.name: read_quarantine(filesystem, table.path) for table in tables}
        return {name: events for name, events in found.items() if events}

    def log(self, part: str, at_least: Level, having: str) -> Sequence[LogEntry]:
        """Return the latest entries of a part's log, without secrets."""
        return chosen(self.shown.read_log(part), at_least, having)

    async def row_events(self, table: str, key: str) -> tuple[RowEvent, ...]:
        """Return every event of a row. Raises UnknownTable, NotAKey, LakeUnreadable and PipelineDown."""
        return await asyncio.to_thread(self.shown.open().row_events, table, key)

    async def ask(self, query: str, as_of: str | None) -> pa.Table:
        """Return the result of a query. Raises the errors of `OpenLake.sql`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._questions, self._answer, query, as_of)

    def _answer(self, query: str, as_of: str | None) -> pa.Table:
        return self.shown.open().sql(query, as_of, QUERY_LIMITS)
