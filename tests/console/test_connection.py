"""A page keeps what was typed while the machine is too busy for the browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.chromium import chromium
from tests.console.walk import Walk, served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LAKE = (
    '[lake]\nname = "idle"\n\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\ntables = ["public.*"]\n'
)
BUSY_FOR_12_SECONDS = "() => { const end = Date.now() + 12_000; while (Date.now() < end); }"


def test_a_browser_that_gets_no_processor_for_a_while_keeps_what_was_typed(tmp_path: Path) -> None:
    lake_file = tmp_path / "lake.toml"
    lake_file.write_text(LAKE)
    with served(lake_file, tmp_path / "state") as address, chromium() as browser:
        walk = Walk(address, browser)
        with walk.page("/row") as page:
            page.get_by_label("key").fill("7")
            page.wait_for_timeout(1000)
            page.evaluate(BUSY_FOR_12_SECONDS)
            page.wait_for_timeout(4000)
            assert page.get_by_label("key").input_value() == "7"
