"""What the console shows of a lake at one moment, and how often it is read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from tributary.contract.acceleration import ChosenSteps
from tributary.local.status import PipelineStatus, read_status
from tributary.operations.chosen_steps import read_chosen_steps
from tributary.operations.table_states import TableState, read_table_states
from tributary.operations.workspace import Workspace

Value = TypeVar("Value")


@dataclass(frozen=True)
class LakeView:
    """A lake on this machine, as it was at a time.

    at        when it was read, UTC
    problem   why the tables could not be read; None if they were
    steps     the steps that the last ingest of the Spark app has chosen
    """

    at: datetime
    pipeline: PipelineStatus
    tables: tuple[TableState, ...]
    problem: str | None = None
    steps: ChosenSteps | None = None

    @property
    def is_well(self) -> bool:
        """Return whether no part of the lake needs a person."""
        tables_are_well = all(table.is_well for table in self.tables)
        return self.problem is None and self.pipeline.is_well and tables_are_well

    @property
    def to_look_at(self) -> tuple[TableState, ...]:
        """The tables that somebody has to do something about."""
        return tuple(table for table in self.tables if not table.is_well)


def read_view(workspace: Workspace) -> LakeView:
    """Read the state of the servers, the connectors and all tables, as far as they answer."""
    now, pipeline = (
        datetime.now(UTC),
        read_status(workspace.state, has_kafka=bool(workspace.lake.connected_sources)),
    )
    try:
        tables = read_table_states(workspace, pipeline)
        has_s3 = any(one.name == "s3" and one.state == "running" for one in pipeline.services)
        return LakeView(now, pipeline, tables, steps=read_chosen_steps(workspace) if has_s3 else None)
    except Exception as error:  # noqa: BLE001  A server can go away between the two readings: the page says so.
        return LakeView(now, pipeline, (), f"{type(error).__name__}: {error}")


class Kept(Generic[Value]):
    """A value that is read in a thread when somebody asks for it, and kept for some seconds.

    So many pages cost as much as one, and the lake is not read while nobody looks.
    """

    def __init__(self, read: Callable[[], Value], seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._value: Value | None = None
        self._read_at = 0.0
        self._lock: asyncio.Lock | None = None

    async def get(self) -> Value:
        """Return a value that is at most so many seconds old."""
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if self._value is None or time.monotonic() >= self._read_at + self._seconds:
                self._value = await asyncio.to_thread(self._read)
                self._read_at = time.monotonic()
            return self._value
