"""A run of the Spark app that a person has ended is over, and not a server that died."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from tributary.cli.run_watch import watch_run
from tributary.local.process import Command, has_died, record_process, start_reporting_process
from tributary.local.spark import SERVICE, RunningSpark, owner_of, stop_spark
from tributary.local.state import StateFolder
from tributary.operations.runs.ingest_run import IngestFailed, IngestRun

APP = """
import json, signal, sys, threading
stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
print(json.dumps({"event": "started", "tables": []}), flush=True)
stopped.wait(60 if sys.argv[1] == "follow" else 0)
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFolder]:
    folder = StateFolder(tmp_path / "state")
    folder.create()
    yield folder
    stop_spark(folder.run, patience_seconds=0)


def start(state: StateFolder, how: str, status: int = 0) -> IngestRun:
    """Start a process in place of the app."""
    log = state.log(SERVICE)
    log.parent.mkdir(parents=True, exist_ok=True)
    command = Command(SERVICE, [sys.executable, "-c", APP, how, str(status)], log)
    process, record = start_reporting_process(command, state.run)
    record_process(owner_of(SERVICE), os.getpid(), log, state.run)
    return IngestRun(RunningSpark(process, record, state), state, Console(quiet=True), lambda _: None)


def interrupt(run: IngestRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first look at the run be interrupted by Ctrl-C."""
    looks = run.is_over

    def look(wait_seconds: float = 0.0) -> bool:
        monkeypatch.setattr(run, "is_over", looks)
        looks(wait_seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "is_over", look)


def assert_over(state: StateFolder) -> None:
    assert not has_died(SERVICE, state.run)
    assert list(state.run.glob("*.json")) == []


def test_after_ctrl_c_nothing_has_died(state: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(state, "follow")
    interrupt(run, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        watch_run(run, Console(quiet=True))
    assert_over(state)


def test_an_app_that_ends_as_ctrl_c_comes_has_not_died(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(state, "once")
    assert run.is_over(30)
    interrupt(run, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        watch_run(run, Console(quiet=True))
    assert_over(state)


def test_a_run_that_fails_is_told_and_is_over(state: StateFolder) -> None:
    with pytest.raises(IngestFailed, match="ended with status 3"):
        watch_run(start(state, "once", 3), Console(quiet=True))
    assert_over(state)
