"""A table's outcome: the reason why it is blocked or retrying, stored in its quarantine folder.

The outcome outlives the run. A healthy table has none. This module does not need PySpark, so
`tributary status` does not either.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from tributary.contract.errors import TributaryError

OUTCOME_FILE = "_outcome.json"
"""The file in the table's quarantine folder. Spark ignores names that begin with an underscore."""

State = Literal["blocked", "retrying"]


@dataclass(frozen=True)
class Outcome:
    """`blocked`: the run has given the table up until a person does something. `retrying`: it had not yet,
    when it was last heard of.

    `since`: when the table was first found so, in ISO 8601. The rest is as in `TributaryError`."""

    state: State
    since: str
    what: str
    where: str | None = None
    found: str | None = None
    expected: str | None = None
    remedy: str | None = None

    @staticmethod
    def of(state: State, error: Exception, before: Outcome | None) -> Outcome:
        """`before` is the table's last outcome: if this is the same, it has been so since then."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if isinstance(error, TributaryError):
            new = Outcome(state, now, error.what, error.where, error.found, error.expected, error.remedy)
        else:
            new = Outcome(state, now, f"{type(error).__name__}: {error}")
        is_same = before is not None and (before.state, before.what) == (new.state, new.what)
        return Outcome(**{**asdict(new), "since": before.since}) if before and is_same else new

    @property
    def reason(self) -> str:
        """All but the remedy, in one sentence or two."""
        return str(TributaryError(self.what, where=self.where, found=self.found, expected=self.expected))

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> Outcome | None:
        """None for a text that only another version understands: no table waits for that."""
        try:
            return Outcome(**json.loads(text))
        except (TypeError, ValueError):
            return None


class OutcomeStore(Protocol):
    """A store of outcomes. `folder` is the table's quarantine path."""

    def read(self, folder: str) -> Outcome | None: ...

    def write(self, folder: str, outcome: Outcome) -> None: ...

    def clear(self, folder: str) -> None:
        """Remove the outcome, if there is one."""
