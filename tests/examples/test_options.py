"""An example refuses options that make no sense, and tells mistakes without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.options import STOPPED
from tests.examples.conftest import PROJECT


def _run(module: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, timeout=60)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--purchases", "0", "a whole number from 30 to 1000000"),
        ("--purchases", "many", "a whole number from 30 to 1000000"),
        ("--late", "-2", "a whole number from 0 to 1000"),
        ("--per-minute", "0", "a number from 0.1 to 10000"),
        ("--per-minute", "nan", "a number from 0.1 to 10000"),
        ("--delayed", "3", "a number from 0 to 1"),
        ("--repeated", "-0.5", "a number from 0 to 1"),
        ("--restock-at", "-1", "a whole number from 0 to 1000"),
    ],
)
def test_the_generator_refuses_a_setting_outside_its_limits(
    option: str, value: str, expected: str, tmp_path: Path
) -> None:
    done = _run("examples.sales.generate", str(tmp_path / "sales"), f"{option}={value}")
    assert done.returncode == 2
    assert f"argument {option}: found {value}, expected {expected}" in done.stderr
    assert not (tmp_path / "sales").exists()


@pytest.mark.parametrize("module", ["examples.sales.run", "examples.northwind.run"])
def test_an_example_starts_nothing_with_a_wrong_option_or_without_a_lake_file(
    module: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    refused = _run(module, "--rate=0", "--state", str(state))
    assert refused.returncode == 2
    assert "argument --rate: found 0, expected a number from 0.1 to 1000" in refused.stderr
    missing = _run(module, "--lake", str(tmp_path / "lake.toml"), "--state", str(state))
    assert missing.returncode == 1
    assert "there is no such lake file" in missing.stderr
    assert "Traceback" not in missing.stderr
    assert not state.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_example_that_is_stopped_from_outside_stops_its_servers_first(number: signal.Signals) -> None:
    code = f"""
import os, time
from examples.options import run_example

def example():
    try:
        os.kill(os.getpid(), {number.value})
        time.sleep(30)
    finally:
        print("servers stopped")

run_example(example)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, timeout=60
    )
    assert done.returncode == STOPPED
    assert done.stdout == "servers stopped\n"
    assert done.stderr == "Stopped.\n"
