"""Servers are found again, stopped and never confused, even if their starter dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tributary.local.process import (
    Command,
    ProcessRecord,
    ServiceFailed,
    StartCancelled,
    find_process,
    has_died,
    read_log_tail,
    read_process,
    resident_bytes,
    start_process,
    stop_process,
    wait_until_healthy,
)

PROJECT = Path(__file__).parents[2]
SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
IGNORES_SIGTERM = [
    sys.executable,
    "-c",
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('up', flush=True)\n"
    "time.sleep(600)",
]
WITH_A_CHILD = [
    sys.executable,
    "-c",
    "import subprocess, sys, time\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(child.pid, flush=True)\n"
    "time.sleep(600)",
]


@pytest.fixture
def run_folder(tmp_path: Path) -> Iterator[Path]:
    """The run folder of a test. Every process with a record in it is killed at the end."""
    folder = tmp_path / "run"
    yield folder
    for record in folder.glob("*.json"):
        stop_process(record.stem, folder, signal.SIGKILL)


def command(tmp_path: Path, arguments: list[str], name: str = "server") -> Command:
    return Command(name, arguments, log=tmp_path / f"{name}.log", environment=dict(os.environ))


def start_and_wait_for_output(tmp_path: Path, run_folder: Path, arguments: list[str]) -> ProcessRecord:
    started = command(tmp_path, arguments)
    before = started.log.stat().st_size if started.log.exists() else 0
    record = start_process(started, run_folder)
    wait_until_healthy(record, lambda: started.log.stat().st_size > before, 30, threading.Event())
    return record


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for_end(pid: int, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def test_a_started_process_is_found_by_its_record_until_it_is_stopped(
    tmp_path: Path, run_folder: Path
) -> None:
    record = start_process(command(tmp_path, SLEEP), run_folder)

    assert read_process("server", run_folder) == record
    assert stop_process("server", run_folder)
    assert not is_alive(record.pid)
    assert not has_died("server", run_folder)
    assert read_process("server", run_folder) is None
    assert not stop_process("server", run_folder)


def test_ctrl_c_does_not_reach_a_started_process(tmp_path: Path, run_folder: Path) -> None:
    record = start_process(command(tmp_path, SLEEP), run_folder)

    assert os.getsid(record.pid) == record.pid


def test_a_process_that_ignores_the_stop_signal_is_killed(tmp_path: Path, run_folder: Path) -> None:
    record = start_and_wait_for_output(tmp_path, run_folder, IGNORES_SIGTERM)

    assert stop_process("server", run_folder, patience_seconds=0.3)
    assert not is_alive(record.pid)


def test_stopping_a_process_stops_its_children_too(tmp_path: Path, run_folder: Path) -> None:
    start_and_wait_for_output(tmp_path, run_folder, WITH_A_CHILD)
    child = int((tmp_path / "server.log").read_text())
    assert is_alive(child)

    stop_process("server", run_folder)

    assert wait_for_end(child)


def test_a_process_that_ended_by_itself_counts_as_dead_until_it_is_stopped(
    tmp_path: Path, run_folder: Path
) -> None:
    record = start_process(command(tmp_path, SLEEP), run_folder)
    os.kill(record.pid, signal.SIGKILL)
    assert wait_for_end(record.pid)

    assert read_process("server", run_folder) is None
    assert has_died("server", run_folder)
    assert not stop_process("server", run_folder)
    assert not has_died("server", run_folder)


def test_a_process_that_only_has_the_same_pid_is_neither_found_nor_stopped(
    tmp_path: Path, run_folder: Path
) -> None:
    record = start_process(command(tmp_path, SLEEP), run_folder)
    stranger = replace(record, name="stranger", started=record.started - 3600)
    (run_folder / "stranger.json").write_text(json.dumps(stranger.__dict__))

    assert find_process(stranger) is None
    assert not stop_process("stranger", run_folder)
    assert is_alive(record.pid)


def test_a_damaged_record_is_named_rather_than_taken_for_a_stopped_server(run_folder: Path) -> None:
    run_folder.mkdir()
    damaged = run_folder / "server.json"
    damaged.write_text('{"name": "server", "pid"')

    with pytest.raises(ServiceFailed) as failure:
        read_process("server", run_folder)

    assert failure.value.where == str(damaged)
    damaged.unlink()


def test_no_process_is_left_if_its_starter_is_killed_before_recording_it(
    tmp_path: Path,
) -> None:
    starter = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys, signal\n"
            "from pathlib import Path\n"
            "from tributary.local import process\n"
            "def killed_here(record, run_folder):\n"
            "    print(record.pid, flush=True)\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
            "process._write_record = killed_here\n"
            f"log = Path({str(tmp_path / 'log')!r})\n"
            "started = process.Command('server', ['/bin/sleep', '600'], log=log)\n"
            f"process.start_process(started, Path({str(tmp_path / 'run')!r}))\n",
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    output, _ = starter.communicate(timeout=30)

    assert starter.returncode == -signal.SIGKILL
    assert wait_for_end(int(output))


def test_a_process_outlives_a_starter_that_is_killed_and_is_then_found_and_stopped(
    tmp_path: Path, run_folder: Path
) -> None:
    starter = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, signal\n"
            "from pathlib import Path\n"
            "from tributary.local import process\n"
            f"log = Path({str(tmp_path / 'log')!r})\n"
            "started = process.Command('server', ['/bin/sleep', '600'], log=log)\n"
            f"process.start_process(started, Path({str(run_folder)!r}))\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n",
        ],
        cwd=PROJECT,
        timeout=30,
    )
    assert starter.returncode == -signal.SIGKILL

    record = read_process("server", run_folder)
    assert record is not None
    assert stop_process("server", run_folder)
    assert wait_for_end(record.pid)


def test_a_process_that_ends_during_its_start_is_reported_with_its_last_output(
    tmp_path: Path, run_folder: Path
) -> None:
    failing = [sys.executable, "-c", "print('the disk is on fire'); raise SystemExit(3)"]
    record = start_process(command(tmp_path, failing), run_folder)

    with pytest.raises(ServiceFailed) as failure:
        wait_until_healthy(record, lambda: False, 30, threading.Event())

    assert failure.value.found is not None
    assert "the disk is on fire" in failure.value.found
    assert failure.value.where == str(tmp_path / "server.log")


def test_a_process_that_never_becomes_healthy_is_reported_when_the_time_is_up(
    tmp_path: Path, run_folder: Path
) -> None:
    record = start_process(command(tmp_path, SLEEP), run_folder)

    with pytest.raises(ServiceFailed, match="not ready after"):
        wait_until_healthy(record, lambda: False, 0.2, threading.Event())


def test_waiting_ends_at_once_when_the_start_is_canceled(tmp_path: Path, run_folder: Path) -> None:
    record = start_process(command(tmp_path, SLEEP), run_folder)
    cancelled = threading.Event()
    cancelled.set()

    with pytest.raises(StartCancelled):
        wait_until_healthy(record, lambda: False, 600, cancelled)


def test_a_program_that_does_not_exist_is_reported_with_its_name(tmp_path: Path, run_folder: Path) -> None:
    record = start_process(command(tmp_path, ["/nowhere/server"]), run_folder)

    with pytest.raises(ServiceFailed) as failure:
        wait_until_healthy(record, lambda: False, 30, threading.Event())

    assert "/nowhere/server" in str(failure.value)


def test_only_its_owner_can_read_the_log_which_keeps_earlier_runs(tmp_path: Path, run_folder: Path) -> None:
    for _ in range(2):
        start_and_wait_for_output(tmp_path, run_folder, SLEEP)
        stop_process("server", run_folder)

    log = tmp_path / "server.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.read_text() == "up\nup\n"


def test_the_end_of_a_log_leaves_out_stack_frames_and_blank_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\n\nERROR no room\n\tat a.b.C(C.java:1)\nCaused by: disk\n\tat d.E(E.java:2)\n")

    assert read_log_tail(log, lines=2) == "ERROR no room\nCaused by: disk"

    frames = '  File "/a/b.py", line 7, in c\n    raise d\n  File "/in/a.zip/e.py", line 9, in f\n'
    log.write_text(f"first\nTraceback (most recent call last):\n{frames}py4j.Error: o1\n: java.No: room\n")
    assert read_log_tail(log, lines=2) == "py4j.Error: o1\n: java.No: room"
    assert "b.py" not in read_log_tail(log)


def test_memory_counts_children(tmp_path: Path, run_folder: Path) -> None:
    record = start_and_wait_for_output(tmp_path, run_folder, WITH_A_CHILD)
    parent = psutil.Process(record.pid).memory_full_info().uss

    assert resident_bytes(record) > parent
