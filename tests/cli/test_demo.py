"""The demo runs to its end, and Ctrl-C stops it cleanly."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tributary.local.pipeline import down
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LAKE_FILE = Path(__file__).parents[2] / "lake.toml"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "state"
    down(StateFolder(tmp_path / "state"))


def _start_demo(state: Path) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("tributary")), "demo", "--state", str(state)]
    size = ["--scale", "0.001", "--transactions", "60", "--rate", "100", "--lake", str(LAKE_FILE)]
    return subprocess.Popen(
        [*command, *size], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    )


def _processes_of(state: Path) -> list[str]:
    found = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return [command for command in found if str(state) in command]


@pytest.mark.long
def test_the_demo_ends_with_an_identical_lake_and_leaves_nothing_running(state: Path) -> None:
    process = _start_demo(state)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert "7 tables" in output
    assert "identical" in output
    assert "60 transactions changed" in output
    assert _processes_of(state) == []
    again = _start_demo(state)
    try:
        line = ""
        assert again.stdout is not None
        while "ready" not in line:
            line = again.stdout.readline()
            assert line, "the second demo ended before it began"
    finally:
        again.send_signal(signal.SIGINT)
        output, _ = again.communicate(timeout=600)
    assert again.returncode == 130, output
    assert _processes_of(state) == []


def test_ctrl_c_while_the_app_ingests_stops_all_of_it(state: Path) -> None:
    process = _start_demo(state)
    try:
        deadline = time.monotonic() + 300
        while not any("main.py" in command for command in _processes_of(state)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=600)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert _processes_of(state) == []
