"""Start the Chromium that the set-up brings, or the machine's own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_BROUGHT = Path(sys.prefix) / "browser" / "chromium"
_OF_THE_MACHINE = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser without a window. Skip the test if there is none."""
    from playwright.sync_api import sync_playwright

    if (program := _BROUGHT / "chromium").exists():
        own = {"LD_LIBRARY_PATH": str(_BROUGHT / "lib"), "FONTCONFIG_PATH": str(_BROUGHT)}
    else:
        found = next(filter(None, map(shutil.which, _OF_THE_MACHINE)), None)
        if found is None:
            pytest.skip(
                "no browser: `make setup` brings one for Linux on x86-64; elsewhere, install Chromium"
            )
        program, own = Path(found), {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-gpu", "--headless=new"],
            env={**os.environ, **own},
        )
        try:
            yield browser
        finally:
            browser.close()
