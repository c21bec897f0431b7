"""What a person reads about an orphan."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tributary.operations.orphans import Orphan


def orphan_text(orphan: Orphan) -> str:
    """Return why a table is an orphan, and what to do about it."""
    table = orphan.table
    match orphan.state:
        case "kept":
            return f"{table} is an orphan that is kept: {orphan.reason}. Its rows stay as they are."
        case "removal interrupted":
            return f"{table} is removed only in part. To remove the rest: tributary orphans remove '{table}'"
    return (
        f"{table} is an orphan: {orphan.reason}. Its rows stay as they are, until you decide: "
        f"tributary orphans keep '{table}', or tributary orphans remove '{table}'"
    )
