"""What needs a person: the reason and the remedy, in a card."""

from __future__ import annotations

from dataclasses import dataclass

from nicegui import ui

from tributary.console.console import Console
from tributary.contract.online_snapshot import Failed
from tributary.contract.remedies import in_words
from tributary.operations.table_states import TableState
from tributary.operations.verify.view import examples_of, sentence

_THEN = "After that, the table comes in by itself while an ingest runs that follows."
_CARD = "w-full border-l-4 border-orange-500 gap-1"


@dataclass(frozen=True)
class Problem:
    """Why somebody has to do something, and what."""

    reason: str
    remedy: str


def problem_of(table: TableState, console: Console) -> Problem | None:
    """Return what needs a person in a table; None: nothing."""
    if table.is_well:
        return None
    if table.left_out is not None:
        remedy = " ".join([*filter(None, table.left_out.remedies), _THEN])
        return Problem(" ".join(table.left_out.reasons), remedy)
    if table.outcome is not None:
        return Problem(table.outcome.reason, in_words(table.outcome.remedies, console.shown.words))
    if table.snapshot is not None:
        reasons = "; ".join(table.snapshot.request.reasons)
        failed = f". But {table.snapshot.problem}." if isinstance(table.snapshot, Failed) else ""
        return Problem(f"{reasons}{failed}", f"Run tributary snapshot {table.table}.")
    if table.verified is not None:
        return Problem(sentence(table.verified), "; ".join(examples_of(table.verified)))
    return None


def has_buttons(table: TableState | None) -> bool:
    """Return whether a button can do anything for a table: nothing while the lake leaves it out."""
    return table is not None and table.left_out is None


def problem_card(problem: Problem, name: str | None = None, path: str | None = None, more: str = "") -> None:
    """Show a problem. Its title, if it has one, leads to a page, and so does the text `more`."""
    with ui.card().classes(_CARD):
        if name is not None and path is None:
            ui.label(name).classes("font-bold")
        elif name is not None and path is not None:
            ui.link(name, path).classes("font-bold")
        ui.label(problem.reason)
        if problem.remedy:
            ui.label(problem.remedy).classes("quiet")
        if more and path is not None:
            ui.link(more, path).classes("text-sm")
