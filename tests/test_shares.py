"""The tests run in some processes: each test once, with one total, and Ctrl-C leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.__main__ import Outcome, at_a_time, exit_status, read_outcome, summary
from tests.shares import TESTS, Kind, shares_of

PROJECT = TESTS.parent
RUN = (
    "import asyncio, sys\n"
    "from pathlib import Path\n"
    "from tests.__main__ import Run, exit_status, summary\n"
    "from tests.shares import Kind, Share\n"
    "folder = Path(sys.argv[1])\n"
    "shares = [Share(path.stem, (path,), Kind.FAST) for path in sorted(folder.glob('test_*.py'))]\n"
    "outcomes = asyncio.run(Run(shares, ['-p', 'no:cacheprovider'], folder, 2).until_done())\n"
    "print(summary(outcomes, 61))\n"
    "sys.exit(exit_status(outcomes))\n"
)


def start_shares(folder: Path, **modules: str) -> subprocess.Popen[str]:
    """Run each module as a share of its own, two at the same time."""
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(text)
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder)], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(
    ("cores", "gibibytes", "expected"),
    [(1, 4, 2), (2, 64, 3), (2, 8, 2), (4, 16, 3), (4, 24, 4), (16, 128, 4)],
)
def test_as_many_processes_run_as_the_machine_has_room_for(cores: int, gibibytes: int, expected: int) -> None:
    assert at_a_time(cores, gibibytes * 2**30) == expected


@pytest.mark.parametrize("kind", Kind)
def test_every_test_of_a_kind_is_in_one_share(kind: Kind) -> None:
    modules = set(TESTS.rglob("test_*.py"))
    if kind is Kind.LONG:
        modules -= set((TESTS / "examples").rglob("test_*.py"))
    times = Counter(
        module
        for share in shares_of(kind)
        for path in share.paths
        for module in (path.rglob("test_*.py") if path.is_dir() else [path])
    )
    assert times == dict.fromkeys(modules, 1)


def test_the_last_line_counts_the_tests_of_all_shares(tmp_path: Path) -> None:
    process = start_shares(
        tmp_path,
        first="def test_a(): pass\ndef test_b(): assert False, 'b is wrong'\n",
        second="import pytest\ndef test_c(): pass\ndef test_d(): pytest.skip('not here')\n",
    )
    output, _ = process.communicate(timeout=120)
    assert output.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"
    assert "b is wrong" in output
    assert process.returncode == 1


def test_ctrl_c_lets_every_share_clean_up_and_starts_no_other(tmp_path: Path) -> None:
    waits = (
        "import pathlib, time, pytest\n"
        "@pytest.fixture\n"
        "def server():\n"
        "    me = pathlib.Path(__file__)\n"
        "    me.with_suffix('.started').touch()\n"
        "    yield\n"
        "    time.sleep(0.5)\n"
        "    me.with_suffix('.stopped').touch()\n"
        "def test_waits(server): time.sleep(100)\n"
    )
    process = start_shares(tmp_path, a=waits, b=waits, c=waits)
    started = [tmp_path / "test_a.started", tmp_path / "test_b.started"]
    deadline = time.monotonic() + 60
    while not all(path.exists() for path in started):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert {path.name for path in tmp_path.glob("*.stopped")} == {"test_a.stopped", "test_b.stopped"}
    assert not (tmp_path / "test_c.started").exists()


def test_no_test_starts_after_ctrl_c_even_if_a_test_goes_on(tmp_path: Path) -> None:
    process = start_shares(
        tmp_path,
        a="import pathlib, time\n"
        "def test_goes_on():\n"
        "    pathlib.Path(__file__).with_suffix('.started').touch()\n"
        "    try: time.sleep(100)\n"
        "    except KeyboardInterrupt: pass\n"
        "def test_of_later(): pathlib.Path(__file__).with_suffix('.later').touch()\n",
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "test_a.started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert not (tmp_path / "test_a.later").exists()


@pytest.mark.parametrize(
    ("statuses", "status"),
    [((0, 0), 0), ((0, 5), 0), ((5, 5), 5), ((0, 1), 1), ((0, -9), 1), ((5, 2), 1)],
)
def test_the_exit_status_is_0_only_if_no_share_failed(statuses: tuple[int, int], status: int) -> None:
    assert exit_status([Outcome("a share", each) for each in statuses]) == status


def test_a_process_that_was_killed_counts_as_failed(tmp_path: Path) -> None:
    outcome = read_outcome("spark", -9, tmp_path / "never written.xml")
    assert outcome.status == -9
    assert "spark: pytest ended with status -9" in summary([outcome], 0)
    assert read_outcome("spark", 0, tmp_path / "never written.xml").status == 1
