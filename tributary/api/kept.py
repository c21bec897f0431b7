"""A value that several readers share for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """A value that is read in a thread when somebody asks for it, and kept for some seconds.

    So many readers cost as much as one, and nothing is read while nobody asks.
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
