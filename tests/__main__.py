"""Run the tests in some pytest processes at a time: `python -m tests [--fast | --long | --coverage]`.

`tests.shares` says which tests a process runs. pytest-xdist does not fit: it kills its workers ten seconds
after Ctrl-C, while they still stop Kafka, PostgreSQL and Spark.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import getpass
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import psutil

from tests.shares import TESTS, Kind, Share, shares_of

_PROCESS_BYTES = 5 * 2**30
"""What a process needs that starts Spark and all servers, with their caches."""
_FEWEST, _MOST = 2, 4
NO_TESTS = 5
"""Pytest's exit status if no test was selected."""
INTERRUPTED = 128 + signal.SIGINT
_LONGEST_LINE = 2**26
_PROGRESS = re.compile(r"[.FEsxXR]+\s+\[\s*\d+%\]")


@dataclass(frozen=True)
class Outcome:
    """A share's exit status and counts of tests."""

    share: str
    status: int
    passed: int = 0
    failed: int = 0
    skipped: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests", description="Options of pytest may follow.", allow_abbrev=False
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--fast", action="store_true", help="leave out the tests that start servers or Spark")
    which.add_argument("--long", action="store_true", help="run the long tests, and no others")
    which.add_argument(
        "--coverage", action="store_true", help="run the fast tests, and show which lines they leave out"
    )
    options, for_pytest = parser.parse_known_args(arguments)
    began = time.monotonic()
    with _folder_of_the_run() as folder:
        # Fast tests come first, to show mistakes early.
        fast = options.fast or options.coverage
        kinds = (Kind.LONG,) if options.long else (Kind.FAST,) if fast else (Kind.FAST, Kind.SLOW)
        most = at_a_time(os.cpu_count() or 1, psutil.virtual_memory().total)
        run = Run(shares_of(*kinds), for_pytest, folder, most, covers=options.coverage)
        outcomes = asyncio.run(run.until_done())
        is_covered = not options.coverage or run.is_interrupted or _report_coverage(folder)
    print(summary(outcomes, time.monotonic() - began), flush=True)
    return exit_status(outcomes) or int(not is_covered)


def at_a_time(cores: int, memory_bytes: int) -> int:
    """Return how many processes the machine runs well at the same time.

    One more than it has cores, because a process with servers waits for them a quarter of its time.
    """
    return max(_FEWEST, min(_MOST, cores + 1, memory_bytes // _PROCESS_BYTES))


def exit_status(outcomes: Sequence[Outcome]) -> int:
    """Return 0 only if no share failed, and at least one test ran."""
    statuses = {outcome.status for outcome in outcomes}
    if INTERRUPTED in statuses:
        return INTERRUPTED
    if statuses - {0, NO_TESTS}:
        return 1
    return 0 if 0 in statuses else NO_TESTS


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """Return a table of the shares that failed, if any, and the totals in the form that CI systems read."""
    lines = [
        f"{each.share}: pytest ended with status {each.status}"
        for each in outcomes
        if each.status not in (0, NO_TESTS)
    ]
    passed, failed, skipped = (
        sum(getattr(each, name) for each in outcomes) for name in ("passed", "failed", "skipped")
    )
    lines.append(f"all tests in {seconds // 60:.0f} min {seconds % 60:.0f} s:")
    return "\n".join([*lines, f"{passed} passed, {failed} failed, {skipped} skipped"])


class Run:
    """Starts the shares one after another, `most` of them at the same time."""

    def __init__(
        self,
        shares: Sequence[Share],
        for_pytest: Sequence[str],
        folder: Path,
        most: int,
        *,
        covers: bool = False,
    ) -> None:
        self.is_interrupted = False
        self._shares = shares
        self._for_pytest = for_pytest
        self._folder = folder
        self._most = most
        self._covers = covers
        self._running: set[asyncio.subprocess.Process] = set()

    async def until_done(self) -> list[Outcome]:
        """Run all shares. A signal that ends a program ends the running shares and starts no other."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupt)
        free = asyncio.Semaphore(self._most)
        return await asyncio.gather(*(self._run_in_turn(share, free) for share in self._shares))

    async def _run_in_turn(self, share: Share, free: asyncio.Semaphore) -> Outcome:
        async with free:
            return Outcome(share.name, INTERRUPTED) if self.is_interrupted else await self._run(share)

    async def _run(self, share: Share) -> Outcome:
        report = self._folder / f"{share.name}.xml"
        process = await asyncio.create_subprocess_exec(
            *self._command(share, report),
            cwd=TESTS.parent,
            env={**os.environ, "COVERAGE_FILE": str(self._folder / f".coverage.{share.name}")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches only the parent. It passes the signal on once, because a second one would end
            # cleanup.
            process_group=0,
            limit=_LONGEST_LINE,
        )
        self._running.add(process)
        if self.is_interrupted:
            process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        text = await _show_progress(share.name, process.stdout)
        status = await process.wait()
        self._running.discard(process)
        print(f"\n----- {share.name} -----\n{text}", flush=True)
        return read_outcome(share.name, INTERRUPTED if self.is_interrupted else status, report)

    def _command(self, share: Share, report: Path) -> list[str]:
        own = [f"--basetemp={self._folder / share.name}", f"--junit-xml={report}", "--color=no"]
        if self._covers:
            own += ["--cov", "--cov-report=", "--cov-fail-under=0"]  # all shares together are held to it
        pytest = [sys.executable, "-m", "pytest", "-p", "tests.interrupts"]
        return [*pytest, *share.arguments(), "--quiet", *own, *self._for_pytest]

    def _interrupt(self) -> None:
        self.is_interrupted = True
        print("\nstopping the tests and the servers that they started", flush=True)
        for process in self._running:
            process.send_signal(signal.SIGINT)


async def _show_progress(share: str, output: asyncio.StreamReader) -> str:
    """Print pytest's lines of dots as they arrive, and return all other lines."""
    kept: list[str] = []
    while line := (await output.readline()).decode(errors="replace"):
        if _PROGRESS.fullmatch(line.strip()):
            print(f"{share:9} {line}", end="", flush=True)
        else:
            kept.append(line)
    return "".join(kept)


def read_outcome(share: str, status: int, report: Path) -> Outcome:
    """Count the tests of a JUnit report. A killed process has not written any."""
    if not report.exists():
        return Outcome(share, status or 1)
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    counts = [{name: int(number) for name, number in suite.items() if number.isdigit()} for suite in suites]
    total, skipped = (sum(count[name] for count in counts) for name in ("tests", "skipped"))
    failed = sum(count["failures"] + count["errors"] for count in counts)
    return Outcome(share, status, total - skipped - failed, failed, skipped)


def _report_coverage(folder: Path) -> bool:
    """Print which lines of each module the fast tests leave out.

    False if they cover less than pyproject.toml asks for, or nobody knows how much."""
    if not any(folder.glob(".coverage.*")):
        print("no process of the fast tests came so far as to say what it covers", flush=True)
        return False
    coverage = [sys.executable, "-m", "coverage"]
    data = f"--data-file={folder / '.coverage'}"
    subprocess.run([*coverage, "combine", "--quiet", data, str(folder)], cwd=TESTS.parent, check=True)
    return subprocess.run([*coverage, "report", data], cwd=TESTS.parent).returncode == 0


@contextmanager
def _folder_of_the_run() -> Iterator[Path]:
    """Yield an empty folder. It stays until the next run, because the tests leave 2 GB to look into."""
    root = Path(tempfile.gettempdir()) / f"tributary-tests-of-{getpass.getuser()}"
    root.mkdir(mode=0o700, exist_ok=True)
    number = 0
    while True:
        with (root / f"{number}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another run has it
                number += 1
                continue
            folder = root / str(number)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            yield folder
            return


if __name__ == "__main__":
    sys.exit(main())
