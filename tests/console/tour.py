"""What a browser sees on the tour of docs/tour.md, step by step, and the pictures of that page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.committed import RENEW
from tests.console.pages import keep, press
from tests.console.walk import Walk
from tributary.console.pages.frame import table_path

if TYPE_CHECKING:
    from playwright.sync_api import Page

LISTING, VENUE = "shop.public.listing", "shop.public.venue"


_PATIENCE_SECONDS = 300.0
"""For what the Spark app does: its start and the first loads take a minute on two free cores."""


@contextmanager
def _patient_page(walk: Walk, path: str) -> Iterator[Page]:
    with walk.page(path) as page:
        page.set_default_timeout(_PATIENCE_SECONDS * 1000)
        yield page


def watch_the_first_snapshot(walk: Walk) -> None:
    """The first page shows how many rows of the first snapshot are in the lake, until all are."""
    with _patient_page(walk, "/") as page:
        page.get_by_text("First snapshot").wait_for()
        page.get_by_text(re.compile(r"^Of .* rows, .* in the lake")).wait_for()
        page.get_by_role("link", name=LISTING).wait_for()
        if os.environ.get(RENEW):
            page.get_by_text(re.compile(r"\d+ s left")).wait_for()
            keep(page, "tour-snapshot", settled=0)
        page.get_by_text("7 tables", exact=True).wait_for()
        page.get_by_text("First snapshot").wait_for(state="detached")
        page.get_by_text("All is well").wait_for()
        _wait_until_it_is_fresh(page)
        keep(page, "tour-well", settled=30)


def _wait_until_it_is_fresh(page: Page) -> None:
    page.get_by_text(re.compile(r"^fresh p95 \d")).wait_for()


def follow_the_row(walk: Walk, change: str) -> None:
    """A row's life has the change, as soon as bronze has its event."""
    with _patient_page(walk, "/row") as page:
        page.get_by_role("combobox", name="table").click()
        page.get_by_role("option", name=LISTING).click()
        page.get_by_label("key").fill("4")
        for _ in range(60):
            page.get_by_label("key").press("Enter")
            page.get_by_label("key").press("Enter")  # Who is impatient sees everything once, too.
            page.wait_for_timeout(1000)
            if page.get_by_text(change, exact=True).count():
                break
        page.locator("button .q-spinner").wait_for(state="detached")
        page.get_by_text(change, exact=True).first.wait_for()
        page.get_by_text("read by a snapshot").wait_for()
        assert page.get_by_text("updated", exact=True).count() == 1
        keep(page, "tour-row", height=460)


def see_the_blocked_table(walk: Walk) -> None:
    """The first page says why the table is blocked, and leads to its page, which says so, too."""
    with _patient_page(walk, "/") as page:
        page.get_by_text("Something has to be done").wait_for()
        page.get_by_text("found string, expected int").wait_for()
        page.get_by_text("1 event in quarantine").wait_for()
        keep(page, "tour-blocked")
        page.get_by_role("link", name=VENUE).click()
        page.get_by_text("Commits, newest first").wait_for()
        page.get_by_text("found string, expected int").wait_for()


def see_the_quarantined_event(walk: Walk) -> None:
    """The quarantine shows the event, its key, and the value that the lake cannot take."""
    with _patient_page(walk, "/") as page:
        page.get_by_role("link", name="1 event in quarantine").click()
        page.get_by_text("· mismatch ·").click()
        page.get_by_text('"priceperticket": "NaN"').first.wait_for()
        page.get_by_text("listid=4").first.wait_for()
        keep(page, "tour-quarantine")


def find_the_row_that_differs(walk: Walk) -> None:
    """The verification finds the row of that event. All pages then show the table as one that differs."""
    press(walk, table_path(LISTING), "Verify", ends_with="1 row differs from the source")
    with _patient_page(walk, "/tables") as page:
        page.get_by_role("gridcell", name="differs").wait_for()
        page.get_by_role("gridcell", name="blocked").wait_for()
        keep(page, "tour-tables", height=520)
    with _patient_page(walk, "/") as page:
        page.get_by_text("priceperticket is 'NaN' in the database, '99.5' in the lake").wait_for()


def rebuild_the_blocked_table(walk: Walk) -> None:
    """The table's button mends it, and its page then shows it as well."""
    with _patient_page(walk, table_path(VENUE)) as page:
        page.get_by_role("button", name="Rebuild", exact=True).click()
        page.get_by_text("The same as: tributary rebuild").wait_for()
        keep(page, "tour-rebuild")
        page.get_by_role("button", name="Rebuild now").click()
        page.get_by_text(f"{VENUE} has").wait_for(timeout=300_000)
        page.get_by_text("found string, expected int").wait_for(state="detached")


def verify_the_mended_row(walk: Walk) -> None:
    """The row equals its source again, and nothing has to be done."""
    press(walk, table_path(LISTING), "Verify", ends_with="equals its source as of")
    with _patient_page(walk, table_path(LISTING)) as page:
        page.get_by_text("equals its source as of").wait_for()
        page.get_by_text("well", exact=True).wait_for()
        keep(page, "tour-mended")
    with _patient_page(walk, "/") as page:
        page.get_by_text("All is well").wait_for()
