"""CPU time of processes and, on Linux, of each kind of thread."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil


@dataclass(frozen=True)
class ProcessorTimes:
    """Seconds of CPU time, user and system, up to a moment or between two moments.

    `threads` is by process and kind of thread, for the threads that still run. It is empty without /proc.
    """

    wall_seconds: float
    processes: Mapping[str, float]
    threads: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def since(self, before: ProcessorTimes) -> ProcessorTimes:
        """Return the CPU time used since `before`."""
        return ProcessorTimes(
            self.wall_seconds - before.wall_seconds,
            {name: taken - before.processes.get(name, 0.0) for name, taken in self.processes.items()},
            {name: taken - before.threads.get(name, 0.0) for name, taken in self.threads.items()},
        )

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of one core that each process used."""
        return {name: seconds / self.wall_seconds for name, seconds in self.processes.items()}


def read_processor_times(moment: float, pids: Mapping[str, int]) -> ProcessorTimes:
    """Return the times of the named processes.

    The time of an unnamed child counts for its parent, even after the child has ended.
    """
    named = frozenset(pids.values())
    return ProcessorTimes(
        moment,
        {name: _process_seconds(psutil.Process(pid), named) for name, pid in pids.items()},
        {
            (name, kind): seconds
            for name, pid in pids.items()
            for kind, seconds in _thread_seconds(pid).items()
        },
    )


def kind_of_thread(name: str) -> str:
    """Return the name without its numbers, which the threads of a pool share."""
    return re.sub(r"[-_# ]*\d+(\.\d+)*", "", name).strip() or name


def _process_seconds(process: psutil.Process, named: frozenset[int]) -> float:
    times = process.cpu_times()
    own = times.user + times.system + times.children_user + times.children_system
    children = [child for child in running_children(process) if child.pid not in named]
    return own + sum(_process_seconds(child, named) for child in children)


def running_children(process: psutil.Process) -> list[psutil.Process]:
    """Return the children without zombies, about which psutil can read nothing."""
    return [child for child in process.children() if child.status() != psutil.STATUS_ZOMBIE]


def _thread_seconds(pid: int) -> Mapping[str, float]:
    ticks = os.sysconf("SC_CLK_TCK")
    found: defaultdict[str, float] = defaultdict(float)
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        fields = rest.split()
        found[kind_of_thread(name)] += (int(fields[11]) + int(fields[12])) / ticks
    return found
