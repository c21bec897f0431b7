"""Each step of docs/tour.md works as the page says, with its own commands."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.browser.chromium import chromium
from tests.committed import RENEW
from tests.console import tour
from tests.console.walk import Walk, answers, environment
from tests.local.landed import wait_until
from tests.ports import free_port
from tributary.local.pipeline import down
from tributary.local.state import StateFolder

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

PAGE = Path(__file__).parents[2] / "docs" / "tour.md"
_PRICES = ("99.50", "99.5", "89.50")
_QUERY_SECONDS = 300
_BLOCK = re.compile(r"^```\n(\$ .*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """A command of the page, and the lines that it prints there. A line with an ellipsis stands for any."""

    text: str
    output: tuple[str, ...]

    def arguments(self) -> list[str]:
        program, *arguments = shlex.split(self.text)
        assert program == "tributary"
        return [str(Path(sys.executable).with_name(program)), *arguments]

    @property
    def reads_the_lake(self) -> bool:
        """Whether a person may run it again until the lake has what was changed."""
        return not self.text.startswith("tributary demo-sql")

    def is_shown_by(self, output: str) -> bool:
        """Return whether the output has the lines of the page in order, apart from numbers and spaces."""
        lines = iter([_alike(line) for line in output.splitlines()])
        return all("…" in line or _alike(line) in lines for line in self.output)


def _alike(line: str) -> str:
    """Return a line as it is on any machine and for any size of the shop."""
    return " ".join(re.sub(r"\d[\d,.:]*", _number, line).split())


def _number(found: re.Match[str]) -> str:
    """Return prices as they are."""
    return found[0] if found[0] in _PRICES else "0"


def _commands() -> list[Command]:
    found = []
    for block in _BLOCK.findall(PAGE.read_text()):
        for text in block.removeprefix("$ ").split("\n$ "):
            command, *output = text.splitlines()
            found.append(Command(command, tuple(filter(None, output))))
    return found


@dataclass
class Terminal:
    """Runs the commands of the page one after another, in a folder of its own."""

    folder: Path
    commands: list[Command] = field(default_factory=_commands)

    @contextmanager
    def start(self) -> Iterator[str]:
        """Run the first command until the context ends, then press Ctrl-C. Yield the console's address."""
        command, port = self.commands.pop(0), free_port()
        # Less to do than on the page, which takes its pictures from what it says.
        size = [] if os.environ.get(RENEW) else ["--scale", "0.01"]
        process = subprocess.Popen(
            [*command.arguments(), "--port", str(port), *size],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pipesize=2**20,
            text=True,
            process_group=0,
            env=environment(),
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until(lambda: process.poll() is not None or answers(address), "the console")
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=600)
        assert process.returncode == 130, output
        assert "Traceback" not in output
        assert command.is_shown_by(output), output

    def run_next(self) -> str:
        """Run the next command of the page. It has to print what the page says."""
        command = self.commands.pop(0)
        deadline = time.monotonic() + _QUERY_SECONDS
        while not command.is_shown_by(output := self._run(command)):
            assert command.reads_the_lake, output
            assert time.monotonic() < deadline, output
        return command.text

    def _run(self, command: Command) -> str:
        process = subprocess.run(
            command.arguments(),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
            check=False,
        )
        assert "Traceback" not in process.stdout
        return process.stdout


def test_the_tour_leads_from_the_first_snapshot_over_a_broken_table_to_a_mended_one(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    try:
        with terminal.start() as address, chromium() as browser:
            walk = Walk(address, browser)
            tour.watch_the_first_snapshot(walk)
            assert "priceperticket = 99.50" in terminal.run_next()
            assert "query" in terminal.run_next()
            tour.follow_the_row(walk, "99.50")
            assert "NaN" in terminal.run_next()
            assert "ALTER TABLE venue" in terminal.run_next()
            assert "UPDATE venue" in terminal.run_next()
            tour.see_the_blocked_table(walk)
            tour.see_the_quarantined_event(walk)
            tour.find_the_row_that_differs(walk)
            assert "status" in terminal.run_next()
            tour.rebuild_the_blocked_table(walk)
            assert "venueseats" in terminal.run_next()
            assert "priceperticket = 89.50" in terminal.run_next()
            tour.verify_the_mended_row(walk)
            assert "reconcile" in terminal.run_next()
            assert walk.problems == []
        assert terminal.commands == []
    finally:
        down(StateFolder(tmp_path / ".tributary"))
