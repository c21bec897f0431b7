"""The steps of a start run in parallel if they can and in order if they must, and one failure ends all."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tributary.local import pipeline
from tributary.local.process import ServiceFailed, StartCancelled
from tributary.local.startup import Startup, State, noted_interrupts
from tributary.local.state import StateFolder


def test_a_server_that_cannot_be_stopped_keeps_no_other_one_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []

    def server(name: str, *, ends_first: bool) -> Any:
        def stop(_: Path) -> bool:
            if name == "connect":
                raise ServiceFailed("the server did not stop", where=name)
            stopped.append(name)
            return True

        return SimpleNamespace(service=name, ends_first=ends_first, stop=stop)

    servers = [server("connect", ends_first=True), server("kafka", ends_first=False)]
    monkeypatch.setattr(pipeline, "ALL_SERVERS", servers)
    with pytest.raises(ServiceFailed, match="did not stop"):
        pipeline._stop_servers(StateFolder(tmp_path), ["connect", "kafka"])
    assert stopped == ["kafka"]


class Reports:
    """The reports of a start."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, State]] = []

    def __call__(self, name: str, state: State, seconds: float) -> None:
        assert seconds >= 0
        self.seen.append((name, state))


def test_steps_that_do_not_wait_for_each_other_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3)

    with Startup(Reports(), threading.Event()) as startup:
        for name in ("postgres", "kafka", "s3"):
            # Each step waits for the two others, so steps in sequence would never finish.
            startup.step(name, lambda: meeting.wait(timeout=30))


def test_a_step_begins_after_its_predecessors_and_gets_their_results() -> None:
    reports = Reports()
    with Startup(reports, threading.Event()) as startup:
        kafka = startup.step("kafka", lambda: 9092)
        connect = startup.step("connect", lambda: kafka.result() + 1, after=[kafka])

    assert connect.result() == 9093
    assert reports.seen == [
        ("kafka", "starting"),
        ("kafka", "ready"),
        ("connect", "starting"),
        ("connect", "ready"),
    ]


def test_a_step_that_had_nothing_to_do_is_reported_as_running() -> None:
    reports = Reports()
    with Startup(reports, threading.Event()) as startup:
        startup.step("kafka", lambda: False, did_something=bool)

    assert reports.seen[-1] == ("kafka", "running")


def test_the_first_error_is_raised_running_steps_are_canceled_and_later_steps_never_begin() -> None:
    reports = Reports()
    startup = Startup(reports, threading.Event())
    told = threading.Event()

    def fail() -> None:
        raise ValueError("no room on the disk")

    def work_on() -> None:
        assert startup.cancelled.wait(timeout=30)
        told.set()
        raise StartCancelled("kafka")

    def run() -> None:
        with startup:
            postgres = startup.step("postgres", fail)
            startup.step("kafka", work_on)
            startup.step("source", lambda: None, after=[postgres])

    with pytest.raises(ValueError, match="no room on the disk"):
        run()
    assert told.is_set()
    assert ("source", "starting") not in reports.seen


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_a_start_only_after_every_step_has_ended(number: signal.Signals) -> None:
    ended = threading.Event()

    def start() -> None:
        with noted_interrupts() as interrupted, Startup(Reports(), interrupted) as startup:

            def work_on() -> None:
                os.kill(os.getpid(), number)
                assert startup.cancelled.wait(timeout=30)
                ended.set()

            startup.step("kafka", work_on)

    with pytest.raises(KeyboardInterrupt):
        start()
    assert ended.is_set()


def test_a_signal_after_the_last_step_still_interrupts() -> None:
    def start() -> None:
        with noted_interrupts() as interrupted, Startup(Reports(), interrupted) as startup:
            startup.step("kafka", lambda: os.kill(os.getpid(), signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        start()


def test_signal_handlers_are_restored_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]

    with noted_interrupts() as interrupted:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.wait(timeout=30)

    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
