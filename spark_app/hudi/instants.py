"""The instants of a Hudi timeline: how to write a moment as an instant, and how to parse the files' names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_INSTANT = "%Y%m%d%H%M%S%f"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPLETED_FILE = re.compile(r"(?P<requested>\d{17})\.(?P<action>commit|deltacommit|replacecommit)")
"""The name of the file of a completed commit or compaction."""


@dataclass(frozen=True, order=True)
class CompletedInstant:
    """A completed instant: when it completed, its name (when it was requested), and its action.

    Instants sort in the order of completion, as in Hudi's InstantComparators. Both times are written as
    `instant_of` writes them."""

    completed: str
    requested: str
    action: str

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.requested}.{self.action}"


def instant_of(moment: datetime) -> str:
    """Return Hudi's name for an instant requested at the moment, which is in UTC."""
    return moment.strftime(_INSTANT)[:17]


def completed_instants(written_ms: Mapping[str, int]) -> tuple[CompletedInstant, ...]:
    """Return the completed commits and compactions in the order in which they were requested.

    `written_ms` says by the name of a file when it was last written, in milliseconds since 1970. In table
    version 6, this is when the instant completed (CompletionTimeQueryViewV1)."""
    found = {name: COMPLETED_FILE.fullmatch(name) for name in written_ms}
    instants = [
        CompletedInstant(
            instant_of(_EPOCH + timedelta(milliseconds=written_ms[name])), match["requested"], match["action"]
        )
        for name, match in found.items()
        if match is not None
    ]
    return tuple(sorted(instants, key=lambda instant: (instant.requested, instant.action)))
