"""What a browser has to see on the pages of a console, step by step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import parquet

from tests.committed import RENEW
from tests.console.contrast import unreadable_texts
from tests.console.walk import Walk
from tributary.console.pages.frame import table_path

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES = Path(__file__).parents[2] / "docs" / "images"
_JOB_SECONDS = 300
"""How long a job of Spark may take that starts on a busy machine."""


_CARDS_TOO_NARROW = """[...document.querySelectorAll('.q-card')]
  .filter(card => card.scrollWidth > card.clientWidth).map(card => card.innerText)"""


def see_the_pipeline(walk: Walk, source: str, *, needs: str) -> None:
    """The path of a row is there with the state of each part, and what needs a person."""
    with walk.page("/") as page:
        page.get_by_text(source, exact=True).wait_for()
        page.get_by_text("RUNNING").first.wait_for()
        page.get_by_text(needs).first.wait_for()
        page.get_by_text("of its log to read").first.wait_for()
        page.get_by_text("events/s come").wait_for()
        keep(page, "console-pipeline")


def see_that_all_is_well(walk: Walk) -> None:
    with walk.page("/") as page:
        page.get_by_text("All is well").wait_for()


def see_what_is_wrong(walk: Walk, name: str, problem: str) -> None:
    """The first page names what needs a person, and why. All other pages still answer."""
    with walk.page("/") as page:
        page.get_by_text("Something has to be done").wait_for()
        page.get_by_text(name, exact=True).first.wait_for()
        page.get_by_text(problem).first.wait_for()
        assert page.evaluate(_CARDS_TOO_NARROW) == []
    for path in ("/tables", "/quarantine", "/alerts", "/ask"):
        with walk.page(path) as page:
            page.get_by_role("link", name="Pipeline").wait_for()


def go_from_the_grid_to_a_table(walk: Walk, table: str) -> None:
    """A click on a table leads to its commits and columns."""
    with walk.page("/tables") as page:
        page.get_by_text(table, exact=True).click()
        page.get_by_text("Commits, newest first").wait_for()
        page.get_by_text("_log_position").wait_for()
        page.get_by_text("int8", exact=True).first.wait_for()
        page.locator("canvas").first.wait_for()
        keep(page, "console-table")


def follow_a_row(walk: Walk, table: str, key: str, changes: list[str], at_the_end: str) -> None:
    """A row's life shows each of these texts, and the row as it is now another one."""
    with walk.page(f"/row?table={table}&key={key}") as page:
        for text in changes:
            page.get_by_text(text).first.wait_for()
        at = page.get_by_label("the row at a time (UTC)")
        for time, text in (("2001-01-01", "no event of this key from that time"), ("2999-01-01", at_the_end)):
            at.fill(time)
            at.press("Enter")
            page.get_by_text(text).wait_for()
        keep(page, "console-row")


def find_the_quarantined_event(walk: Walk, reason: str, content: str) -> None:
    """The event is there with its reason, and a click shows its bytes."""
    with walk.page("/quarantine") as page:
        page.get_by_text(f"· {reason} ·").first.click()
        page.get_by_text(content).first.wait_for()


def ask(walk: Walk, query: str, answer: str) -> None:
    """The answer to a query, or its error, shows this text."""
    with walk.page("/ask") as page:
        page.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(query)
        page.get_by_role("button", name="Run").click()
        page.get_by_text(answer).first.wait_for()
        assert "owned" not in page.title()


def ask_by_keyboard(walk: Walk, query: str, answer: str) -> None:
    """Ctrl-Enter runs the statement as it is. Escape and Tab lead from the editor to the next field."""
    with walk.page("/ask") as page:
        page.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(query)
        page.wait_for_timeout(500)
        page.keyboard.press("Control+Enter")
        page.get_by_text(answer).first.wait_for()
        assert page.locator(".cm-line").count() == 1, "the editor has a line more"
        page.locator(".cm-content").click()
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "as of"


def save_an_answer(walk: Walk) -> None:
    """The grid shows values that Python lacks, and both files have them."""
    query = "SELECT DATE '0044-03-15 (BC)' AS ides, INTERVAL 3 DAY AS pause, NULL AS nothing"
    with walk.page("/ask") as page:
        page.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(query)
        page.get_by_role("button", name="Run").click()
        for text in ("0044-03-15 (BC)", "3 days", "NULL"):
            page.get_by_role("gridcell", name=text, exact=True).wait_for()
        with page.expect_download() as csv:
            page.get_by_role("button", name="CSV").click()
        assert csv.value.path().read_text().splitlines() == ["ides,pause,nothing", "0044-03-15 (BC),3 days,"]
        with page.expect_download() as saved:
            page.get_by_role("button", name="Parquet").click()
        assert saved.value.suggested_filename == "answer.parquet"
        assert parquet.ParquetFile(saved.value.path()).read().column("pause").to_pylist() == ["3 days"]


def miss_a_page(walk: Walk) -> None:
    """A page that does not exist says so, below the ways to those that do."""
    page = walk.browser.new_page()
    found = page.goto(f"{walk.address}/no/such/page")
    assert found is not None
    assert found.status == 404
    page.get_by_text("The console has no page /no/such/page.").wait_for()
    page.get_by_role("link", name="Pipeline").click()
    page.get_by_text("All is well").wait_for()
    page.close()


def complete_a_name(walk: Walk, typed: str, offered: str) -> None:
    """The editor offers the name of a column."""
    with walk.page("/ask") as page:
        page.locator(".cm-content").click()
        # The names come some moments after the page.
        for _ in range(20):
            page.keyboard.press("Control+a")
            page.keyboard.type(f"SELECT {typed}")
            page.wait_for_timeout(500)
            if page.locator(".cm-completionLabel", has_text=offered).count():
                return
        raise AssertionError(f"the editor does not offer {offered}")


def draw_an_answer(walk: Walk, query: str) -> None:
    """An answer of two columns can be drawn as a chart of several kinds."""
    with walk.page("/ask") as page:
        page.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(query)
        page.get_by_role("button", name="Run").click()
        page.get_by_text("Chart", exact=True).click()
        page.locator("canvas").first.wait_for()
        page.get_by_role("combobox", name="chart").click()
        page.get_by_role("option", name="pie").click()
        page.locator("canvas").first.wait_for()


def see_a_board(walk: Walk, title: str, *, texts: list[str], charts: int) -> None:
    """The list leads to the board, with its texts, its charts, and a picture of the first chart to save."""
    with walk.page("/boards") as page:
        page.get_by_role("link", name=title).click()
        for text in texts:
            page.get_by_text(text).first.wait_for()
        page.locator("canvas").nth(charts - 1).wait_for()
        page.wait_for_timeout(500)
        with page.expect_download() as saved:
            page.get_by_role("button", name="PNG").first.click()
        assert saved.value.suggested_filename.endswith(".png")
        assert saved.value.path().read_bytes().startswith(b"\x89PNG")
        assert "owned" not in page.title()


def follow_a_number(walk: Walk, path: str, before: str, after: str, change: Callable[[], None]) -> None:
    """An open board shows another number after a change, without a click."""
    with walk.page(path) as page:
        page.get_by_text(before, exact=True).first.wait_for()
        change()
        page.get_by_text(after, exact=True).first.wait_for()


def press(walk: Walk, path: str, button: str, *, place: int = 0, ends_with: str) -> None:
    """A click on a button asks first. After the second click, the page shows how it ended."""
    with walk.page(path) as page:
        page.get_by_role("button", name=button, exact=True).nth(place).click()
        page.get_by_text("The same as: tributary").first.wait_for()
        page.get_by_role("button", name=f"{button} now").click()
        page.get_by_text(ends_with).first.wait_for(timeout=_JOB_SECONDS * 1000)


def change_your_mind(walk: Walk, path: str, button: str) -> None:
    """A click on Cancel starts nothing."""
    with walk.page(path) as page:
        page.get_by_role("button", name=button, exact=True).first.click()
        page.get_by_role("button", name="Cancel").click()
        page.wait_for_timeout(1500)
        assert page.get_by_text("running", exact=True).count() == 0


def find_no_button(walk: Walk, path: str) -> None:
    """The page is complete, but nothing on it changes anything."""
    with walk.page(path) as page:
        page.get_by_text("Commits, newest first").wait_for()
        assert page.get_by_role("button", name="Pause", exact=True).count() == 0


def see_the_alerts(walk: Walk, *texts: str) -> None:
    """The page of alerts shows each of these texts."""
    with walk.page("/alerts") as page:
        for text in texts:
            page.get_by_text(text).first.wait_for()
        keep(page, "console-alerts")


def reach_a_table_by_keyboard(walk: Walk, table: str) -> None:
    """Enter in a row of the grid leads to its table."""
    with walk.page("/tables") as page:
        page.get_by_role("gridcell", name=table, exact=True).focus()
        page.keyboard.press("Enter")
        page.get_by_text("Commits, newest first").wait_for()


def search_a_log(walk: Walk, part: str, text: str, *, found: str) -> None:
    """The log of a part is there, and a search leaves only the entries with a text."""
    with walk.page(f"/logs?part={part}") as page:
        page.get_by_text(found).first.wait_for()
        page.get_by_label("with the text").fill("no log has this")
        page.get_by_text("No such entry.").wait_for()
        page.get_by_label("with the text").fill(text)
        page.get_by_text(found).first.wait_for()
        keep(page, "console-logs")


def fit_on_a_phone(walk: Walk, table: str) -> None:
    """No page is wider than a phone in the dark."""
    for path in _all_pages(table):
        with walk.page(path, viewport={"width": 390, "height": 800}, color_scheme="dark") as page:
            page.get_by_role("link", name="Pipeline").wait_for()
            page.wait_for_timeout(300)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert dark != "rgb(255, 255, 255)", path


def read_every_text(walk: Walk, table: str) -> None:
    """Every text on every page has enough contrast, by day and in the dark."""
    for path in _all_pages(table):
        with walk.page(path) as page:
            page.get_by_role("link", name="Pipeline").wait_for()
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.wait_for_timeout(700)
                assert unreadable_texts(page) == [], (path, scheme)


def _all_pages(table: str) -> tuple[str, ...]:
    paths = ("/", "/tables", table_path(table), "/row", "/quarantine", "/alerts")
    return (*paths, "/logs?part=connect", "/ask", "/boards")


def keep(page: Page, name: str, *, settled: float = 2, height: int = 720) -> None:
    """Keep a picture for the docs if texts and pictures are renewed, after so many seconds."""
    if os.environ.get(RENEW):
        IMAGES.mkdir(exist_ok=True)
        page.set_viewport_size({"width": 1280, "height": height})
        page.wait_for_timeout(settled * 1000)
        page.screenshot(path=IMAGES / f"{name}.png")
