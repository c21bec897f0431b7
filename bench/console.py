"""What the console costs, and how fast it is, beside an app that follows hundreds of tables."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import requests

from bench import freshness
from bench.freshness import CATCH_UP_SECONDS, NoResult, Workers
from bench.processor_time import read_processor_times
from bench.results import Figure, Results
from tests.browser.chromium import chromium
from tests.ports import free_port
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from playwright.sync_api import Page

_START_SECONDS = 60.0
_REST_SECONDS = 10.0
"""How long a console is busy with its own start."""
_PAGES = {"pipeline": "/", "tables": "/tables"}
_PATIENCE_MILLISECONDS = 60_000
_WATCH_TASKS = """() => {
  window.longest = 0;
  new PerformanceObserver(list => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({entryTypes: ["longtask"]});
}"""
"""The browser reports tasks of more than 50 ms, in which a page answers nobody."""


@dataclass(frozen=True)
class Settings:
    """A lake with `busy` tables that change all the time, and `idle` ones. `seconds`: of each measurement."""

    name: str = "console"
    busy: int = 10
    idle: int = 490
    rows: int = 20
    changes_per_second: float = 20.0
    seconds: float = 40.0


FULL = Settings()
QUICK = Settings(busy=2, idle=4, seconds=15.0)


@dataclass(frozen=True)
class Observed:
    """A page, or nobody looking.

    shown    seconds until the page shows what it is for, each time that it was opened; the first is the first
             answer of a console that has just started
    cores    the console's share of a core
    longest  seconds that the page was busy with one task; 0: less than 0.05
    """

    shown: tuple[float, ...]
    cores: float
    longest: float


def run(settings: Settings = FULL) -> Results:
    """Measure the console without a page, and with each of the pages open. Raises `NoResult`."""
    work = freshness.Settings(
        tables=settings.busy,
        idle_tables=settings.idle,
        rows=settings.rows,
        idle_rows=settings.rows,
        changes_per_second=settings.changes_per_second,
    )
    names = {*work.changed, *work.idle}
    with freshness.running_pipeline(freshness.LAKE, freshness.seed_of(work)) as workspace:
        for table in names:
            freshness.wait_until_kafka_holds(workspace, table, settings.rows)
        with freshness.following_app(workspace) as (app, commits):
            freshness.wait_while_running(
                app, CATCH_UP_SECONDS, lambda: {commit.table for commit in list(commits)} >= names
            )
            freshness.wait_for_lake(workspace)
            with Workers(workspace, work):
                found = observe(workspace, settings.seconds)
    return Results(settings.name, asdict(settings), tuple(figures(len(names), found)))


def figures(tables: int, found: Mapping[str, Observed]) -> Iterator[Figure]:
    for page, one in found.items():
        of: dict[str, str | int | float] = {"tables": tables, "page": page}
        if one.shown:
            yield Figure("first answer of a new console", round(one.shown[0], 2), "s", of)
            yield Figure("until it is shown", round(min(one.shown[1:]), 2), "s", of)
            yield Figure("longest task of the page", round(one.longest, 2), "s", of)
        yield Figure("the console's processor time", round(100 * one.cores, 1), "% of a core", of)


def observe(workspace: Workspace, seconds: float) -> Mapping[str, Observed]:
    """Measure a console of a lake whose pipeline runs, for so many seconds without a page and with each."""
    found: dict[str, Observed] = {}
    with chromium() as browser:
        for page, path in _PAGES.items():
            with _console(workspace) as (address, pid), browser.new_context() as context:
                opened = context.new_page()
                opened.set_default_timeout(_PATIENCE_MILLISECONDS)
                shown = tuple(_seconds_to_show(opened, f"{address}{path}", page) for _ in range(4))
                opened.evaluate(_WATCH_TASKS)
                cores = _cores(pid, seconds)
                longest: float = opened.evaluate("window.longest")
                found[page] = Observed(shown, cores, longest / 1000)
        with _console(workspace) as (_, pid):
            time.sleep(_REST_SECONDS)
            found["none"] = Observed((), _cores(pid, seconds), 0.0)
    return found


def _seconds_to_show(page: Page, address: str, name: str) -> float:
    began = time.perf_counter()
    page.goto(address)
    page.get_by_text({"pipeline": "Servers on this machine", "tables": "public."}[name]).first.wait_for()
    return time.perf_counter() - began


def _cores(pid: int, seconds: float) -> float:
    before = read_processor_times(time.time(), {"console": pid})
    time.sleep(seconds)
    return read_processor_times(time.time(), {"console": pid}).since(before).shares["console"]


@contextmanager
def _console(workspace: Workspace) -> Iterator[tuple[str, int]]:
    """Serve the console, and yield its address and its process."""
    port = free_port()
    where = ["--lake", str(workspace.lake_file), "--state", str(workspace.state.path), "--port", str(port)]
    console = subprocess.Popen(
        [str(Path(sys.executable).with_name("tributary")), "console", *where],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + _START_SECONDS
    try:
        # A file of the pages: it does not look at the lake.
        while not _answers(f"{address}/favicon.ico"):
            if console.poll() is not None or time.monotonic() > deadline:
                raise NoResult("The console does not answer")
            time.sleep(0.2)
        yield address, console.pid
    finally:
        console.terminate()
        console.wait(30)


def _answers(address: str) -> bool:
    try:
        requests.get(address, timeout=5)
    except requests.ConnectionError:
        return False
    return True
