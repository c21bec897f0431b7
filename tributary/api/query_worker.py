"""Answer questions over a pipe, one after another, in a process that may be ended at any time.

DuckDB neither counts nor interrupts the work on a single value, such as that of `repeat('x', 2000000000)`. So
the system limits the memory of this process, and the process ends itself if a query outlives its time.
"""

from __future__ import annotations

import os
import pickle
import re
import select
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tributary.api.sql import Limits, QueryError, limit_bytes, needs_too_much_memory, query_read, read_named
from tributary.api.tables import LakeTable
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import S3FileSystem

LATE = 75
"""The exit status after a query that did not end in time."""

_IDLE_SECONDS = 60.0
_GRACE_SECONDS = 2.0
"""How long a query may take to end after DuckDB was asked to end it."""

_ALSO = 256 * 2**20
"""Bytes for threads, and for what DuckDB does not count."""

_KEPT = 512 * 2**20
"""Bytes of memory that a process may hold while it waits. A new one holds 50 MB after its first question."""


@dataclass(frozen=True)
class SentFiles:
    """Access to the lake's buckets that one process can send to another. Its credentials may expire."""

    filesystem: S3FileSystem
    hudi_options: dict[str, str]


@dataclass(frozen=True)
class Question:
    """The arguments of `query_tables`."""

    files: SentFiles
    folders: Sequence[LakeTable]
    query: str
    as_of: str | None
    limits: Limits

    def answer(self) -> pa.Table:
        """Raises what `query_tables` raises."""
        read = read_named(self.files, self.folders, self.query, self.as_of)
        with _ended_after(self.limits.seconds + _GRACE_SECONDS), _limited(limit_bytes(self.limits)):
            try:
                return query_read(self.files, self.folders, read, self.query, self.limits)
            except MemoryError as error:
                raise needs_too_much_memory(self.limits, str(error)) from error


def serve() -> None:
    """Answer the questions of standard input, until it ends or nothing comes for a while.

    An answer is a pickled error, or a pickled None and a stream of Arrow.
    """
    questions = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # What a library prints must not get between the answers.
        while _comes(questions):
            try:
                question: Question = pickle.load(questions)
            except EOFError:
                return
            error = _answer(question, answers)
            # After a failed allocation, DuckDB can crash later. And not all memory that it took comes back.
            if not _is_about_the_query(error) or _status_bytes("RssAnon") > _KEPT:
                os._exit(0)


def _comes(questions: IO[bytes]) -> bool:
    readable, _, _ = select.select([questions], [], [], _IDLE_SECONDS)
    return bool(readable)


def _answer(question: Question, answers: IO[bytes]) -> Exception | None:
    """Send the answer, or why there is none. Return why."""
    import pyarrow as pa

    try:
        found = question.answer()
    except Exception as error:  # noqa: BLE001  It belongs to the process that asks.
        pickle.dump(_sendable(error), answers)
        answers.flush()
        return error
    pickle.dump(None, answers)
    with pa.ipc.new_stream(answers, found.schema) as stream:
        stream.write_table(found)
    answers.flush()
    return None


def _is_about_the_query(error: BaseException | None) -> bool:
    """Tell whether the error and its causes say what is wrong with the query, and no more."""
    import duckdb

    while isinstance(error, TributaryError | duckdb.ProgrammingError):
        error = error.__cause__
    return error is None


def _sendable(error: Exception) -> Exception:
    """Return the error, or what it says if no other process could take it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001  Libraries have errors of any kind.
        return QueryError("The query cannot be answered", found=f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """End this process if the context takes longer."""
    timer = threading.Timer(seconds, os._exit, [LATE])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _limited(memory: float) -> Iterator[None]:
    """Let the context take so many bytes for its work, and as many for its answer. Only Linux can do that."""
    if sys.platform != "linux":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    # The limit counts what the process has reserved, also where it never wrote.
    most = _status_bytes("VmData") + round(2 * memory) + _ALSO
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _status_bytes(name: str) -> int:
    """Return a size of this process, as Linux counts it. 0: the system does not say."""
    status = Path("/proc/self/status")
    found = re.search(rf"^{name}:\s*(\d+) kB", status.read_text(), re.MULTILINE) if status.exists() else None
    return 0 if found is None else int(found[1]) * 1024
