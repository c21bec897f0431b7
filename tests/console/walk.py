"""A walk through all pages of a console in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests

from tests.ports import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE_SECONDS = 60.0


def environment() -> dict[str, str]:
    """Return the environment without the variables by which NiceGUI knows that it runs below pytest."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


def answers(address: str) -> bool:
    """Return whether a console answers there."""
    try:
        requests.get(f"{address}/healthz", timeout=30)
    except requests.ConnectionError:
        return False
    return True


@contextmanager
def served(lake_file: Path, state: Path, *options: str) -> Iterator[str]:
    """Serve a console with the installed command, and yield its address."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("tributary")), "console", "--port", str(port), *options]
    process = subprocess.Popen([*command, "--lake", str(lake_file), "--state", str(state)], env=environment())
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not answers(address):
            assert process.poll() is None, f"the console ended with status {process.returncode}"
            assert time.monotonic() < deadline, "the console does not answer"
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(30)


@dataclass
class Walk:
    """What a browser meets. `problems` are errors on the pages, and requests to other hosts."""

    address: str
    browser: Browser
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def page(self, path: str, **options: Any) -> Iterator[Page]:
        """Open a page, and note what goes wrong on it."""
        context = self.browser.new_context(**options)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        page.on("pageerror", lambda error: self.problems.append(f"{path}: {error}"))
        page.on("console", self._if_error(path))
        page.on("request", self._if_foreign(path))
        page.goto(f"{self.address}{path}")
        try:
            yield page
        finally:
            context.close()

    def _if_error(self, path: str) -> Callable[[Any], None]:
        def note(message: Any) -> None:
            if message.type == "error":
                self.problems.append(f"{path}: {message.text}")

        return note

    def _if_foreign(self, path: str) -> Callable[[Any], None]:
        own = urlsplit(self.address).netloc

        def note(request: Any) -> None:
            parts = urlsplit(request.url)
            if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != own:
                self.problems.append(f"{path} asks {request.url}")

        return note
