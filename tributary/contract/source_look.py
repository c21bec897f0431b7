"""What the Spark app has to know of the last look at a source's catalog, before it makes a new table.

A file for each source is on the lake's storage. The side that reads the source's catalog writes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

LOOKS_FOLDER = "_definitions"
"""The folder in the quarantine bucket that has the files. No source's name begins with an underscore."""


def look_name(source: str) -> str:
    """Return the path of the last look at a source, below the quarantine location."""
    return f"{LOOKS_FOLDER}/{source}.json"


@dataclass(frozen=True)
class SourceLook:
    """The tables of a source at the last look, by name: source.schema.table.

    known      the tables that the look has met: each was judged, or was in the lake before
    held_back  the tables that the lake must not have: they were left out, and have not been read again since
    """

    source: str
    known: frozenset[str]
    held_back: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, text: str) -> SourceLook | None:
        """Parse a look. Return None for a text that is none, or that is of a version without these names."""
        try:
            found = json.loads(text)
            names = frozenset(map(str, (*found["tables"], *found["gone"], *found["left_out"])))
            return cls(str(found["source"]), names, frozenset(map(str, found["held_back"])))
        except (KeyError, TypeError, ValueError):
            return None
