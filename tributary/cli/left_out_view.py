"""Show the tables that are left out of the lake to a person, or as JSON values."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from rich.console import Console

from tributary.local.left_out import LeftOutTable


def left_out_facts(left_out: LeftOutTable) -> dict[str, Any]:
    """Return the facts under the names that a table's outcome has."""
    return {
        "state": "left out",
        "since": None,
        "reason": " ".join(left_out.reasons),
        "remedy": " ".join(filter(None, left_out.remedies)) or None,
    }


def print_left_out(left_out: LeftOutTable, console: Console) -> None:
    """Print a paragraph with the reasons, each with what to do."""
    reasons = (reason.removeprefix(f"table {left_out.table}: ") for reason in left_out.reasons)
    # A look that an earlier version recorded can lack remedies.
    pairs = zip_longest(reasons, left_out.remedies, fillvalue="")
    text = " ".join(" ".join(filter(None, pair)) for pair in pairs)
    console.print(
        f"  {left_out.table} is left out: {text}",
        style="yellow",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
