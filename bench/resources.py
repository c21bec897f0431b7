"""What processes hold, and a folder: memory, threads, open files, bytes on disk; read again and again."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import psutil

from bench.processor_time import running_children


@dataclass(frozen=True)
class Held:
    """By a process with its children: `resident` bytes of memory, `threads`, and `open_files`, connections
    among them."""

    resident: int
    threads: int
    open_files: int


@dataclass(frozen=True)
class Resources:
    """At a moment, in seconds of the epoch: what each process holds, and the bytes in each folder."""

    at: float
    processes: Mapping[str, Held]
    folders: Mapping[str, int]


def read_resources(pids: Mapping[str, int], folder: Path) -> Resources:
    """Of the processes, by name, and of all that the folder has, by the name of the folder in it. A child
    counts to its parent, but for one that has a name itself."""
    named = frozenset(pids.values())
    processes = {name: _held(psutil.Process(pid), named) for name, pid in pids.items()}
    folders = {entry.name: _bytes_in(entry) for entry in folder.iterdir() if entry.is_dir()}
    return Resources(time.time(), processes, folders)


@contextmanager
def sampled(pids: Mapping[str, int], folder: Path, seconds: float) -> Iterator[list[Resources]]:
    """What is read every so many seconds while the context lasts; nothing, where that is 0."""
    samples: list[Resources] = []
    is_over = threading.Event()

    def read_until_over() -> None:
        while not is_over.is_set():
            samples.append(read_resources(pids, folder))
            is_over.wait(seconds)

    if seconds <= 0:
        yield samples
        return
    reader = threading.Thread(target=read_until_over, name="resources", daemon=True)
    reader.start()
    try:
        yield samples
    finally:
        is_over.set()
        reader.join()


def _held(process: psutil.Process, named: frozenset[int]) -> Held:
    try:
        children = [_held(child, named) for child in running_children(process) if child.pid not in named]
        with process.oneshot():
            own = Held(process.memory_info().rss, process.num_threads(), process.num_fds())
    except psutil.NoSuchProcess:
        return Held(0, 0, 0)  # it has just ended
    held = [own, *children]
    return Held(*(sum(getattr(one, what.name) for one in held) for what in fields(Held)))


def _bytes_in(folder: Path) -> int:
    found = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                found += Path(parent, name).lstat().st_blocks * 512
            except FileNotFoundError:
                continue  # it has just been removed
    return found
