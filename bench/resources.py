"""Samples of the memory, threads and open files of processes, and of the bytes in folders."""

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
    """The resources of a process and its children. `resident` is in bytes. Connections are open files too."""

    resident: int
    threads: int
    open_files: int


@dataclass(frozen=True)
class Resources:
    """The resources of each process and the bytes in each folder at one moment (seconds since 1970)."""

    at: float
    processes: Mapping[str, Held]
    folders: Mapping[str, int]


def read_resources(pids: Mapping[str, int], folder: Path) -> Resources:
    """Read the resources of the named processes, and the size of each folder directly in `folder`.

    An unnamed child counts for its parent.
    """
    named = frozenset(pids.values())
    processes = {name: _held(psutil.Process(pid), named) for name, pid in pids.items()}
    folders = {entry.name: _bytes_in(entry) for entry in folder.iterdir() if entry.is_dir()}
    return Resources(time.time(), processes, folders)


@contextmanager
def sampled(pids: Mapping[str, int], folder: Path, seconds: float) -> Iterator[list[Resources]]:
    """Read the resources every `seconds` while the context lasts. With 0, read nothing."""
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
        return Held(0, 0, 0)  # the process has just ended
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
