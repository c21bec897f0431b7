"""What a person reads about an orphan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tributary.operations.orphans import Orphan


Option = Literal["", " --aws"]
"""What the commands about the lake end with: nothing for the one on this machine."""


def orphan_text(orphan: Orphan, option: Option = "") -> str:
    """Return why a table is an orphan, and what to do about it."""
    table = f"'{orphan.table}'{option}"
    match orphan.state:
        case "kept":
            return f"{orphan.table} is an orphan that is kept: {orphan.reason}. Its rows stay as they are."
        case "removal interrupted":
            command = f"tributary orphans remove {table}"
            return f"{orphan.table} is removed only in part. To remove the rest: {command}"
    return (
        f"{orphan.table} is an orphan: {orphan.reason}. Its rows stay as they are, until you decide: "
        f"tributary orphans keep {table}, or tributary orphans remove {table}"
    )
