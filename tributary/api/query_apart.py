"""Run queries with limits in other processes, so that no query can take more of this one than its answer."""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tributary.api.lake_files import LakeFiles
from tributary.api.query_worker import LATE, Question, SentFiles
from tributary.api.sql import Limits, QueryError, needs_too_much_memory, took_too_long
from tributary.api.tables import LakeTable

if TYPE_CHECKING:
    import pyarrow as pa

_COMMAND = (sys.executable, "-P", "-c", "from tributary.api.query_worker import serve; serve()")


def query_apart(
    files: LakeFiles, folders: Sequence[LakeTable], query: str, as_of: str | None, limits: Limits
) -> pa.Table:
    """Return what `query_tables` returns, from another process. Raises what `query_tables` raises."""
    sent = SentFiles(files.filesystem, files.hudi_options)
    return _WORKERS.answer(Question(sent, folders, query, as_of, limits))


@dataclass(frozen=True)
class _Worker:
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls) -> _Worker:
        # In a group of its own, it outlives a Ctrl-C until this process closes its input.
        return cls(
            subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Arrow's own pool reserves a GiB at once, most of what a question may take.
                env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
                process_group=0,
            )
        )

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def answer(self, question: Question) -> pa.Table | Exception | None:
        """Return the answer, or why there is none. None: the process had ended before the question came."""
        import pyarrow as pa

        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            pickle.dump(question, self.process.stdin)
            self.process.stdin.flush()
            error: Exception | None = pickle.load(self.process.stdout)
            if error is not None:
                return error
            with pa.ipc.open_stream(self.process.stdout) as stream:
                return stream.read_all()
        except (EOFError, OSError, pa.ArrowInvalid):
            status = self.process.wait()
            return None if status == 0 else _ending(status, question.limits)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _ending(status: int, limits: Limits) -> QueryError:
    if status == LATE:
        return took_too_long(limits)
    return needs_too_much_memory(limits, f"its process ended with status {status}")


@dataclass
class _Workers:
    """Processes that wait for a question. Any thread may ask. As many live as have asked at the same time."""

    _idle: list[_Worker] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, question: Question) -> pa.Table:
        found = None
        while found is None:
            worker = self._take()
            try:
                found = worker.answer(question)
            except BaseException:
                worker.end()  # A part of an answer may still be in its pipe.
                raise
            self._give_back(worker)
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """End all processes that wait."""
        with self._lock:
            while self._idle:
                self._idle.pop().end()

    def _take(self) -> _Worker:
        with self._lock:
            while self._idle:
                if (worker := self._idle.pop()).is_alive:
                    return worker
        return _Worker.start()

    def _give_back(self, worker: _Worker) -> None:
        if worker.is_alive:
            with self._lock:
                self._idle.append(worker)


_WORKERS = _Workers()
atexit.register(_WORKERS.close)
