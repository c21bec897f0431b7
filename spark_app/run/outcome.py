"""A table's outcome: the reason why it is blocked or retrying, stored in its quarantine folder.

The outcome outlives the run. A healthy table has none. This module does not need PySpark, so
`tributary status` does not either.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from tributary.contract.errors import TributaryError, told_by
from tributary.contract.remedies import Remedies, remedies_as_json, remedies_for_table, remedies_from_json

OUTCOME_FILE = "_outcome.json"
"""The file in the table's quarantine folder. Spark ignores names that begin with an underscore."""

State = Literal["blocked", "retrying"]


@dataclass(frozen=True)
class Outcome:
    """The reason why a table has a problem.

    state  blocked: the run leaves the table alone until a person does something
           retrying: the run was still trying when it last reported
    since  when the problem was first found, in ISO 8601

    The other fields are as in `TributaryError`."""

    state: State
    since: str
    what: str
    where: str | None = None
    found: str | None = None
    expected: str | None = None
    remedies: Remedies = ()

    @staticmethod
    def of(state: State, error: Exception, before: Outcome | None, table: str) -> Outcome:
        """Return the outcome of a table's error.

        `before` is the table's last outcome. The new one keeps its time if the reason is the same.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if isinstance(error, TributaryError):
            remedies = remedies_for_table(error.remedies, table)
            new = Outcome(state, now, error.what, error.where, error.found, error.expected, remedies)
        else:
            new = Outcome(state, now, told_by(error))
        is_same = before is not None and (before.state, before.what) == (new.state, new.what)
        return replace(new, since=before.since) if before and is_same else new

    @property
    def reason(self) -> str:
        """One sentence that says what is wrong."""
        return TributaryError(self.what, where=self.where, found=self.found, expected=self.expected).reason

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "remedies": remedies_as_json(self.remedies)}, indent=2)

    @staticmethod
    def from_json(text: str) -> Outcome | None:
        """Parse an outcome. Return None for a text of another version, because no table depends on it."""
        try:
            found = json.loads(text)
            return Outcome(**{**found, "remedies": remedies_from_json(found["remedies"])})
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


class OutcomeStore(Protocol):
    """A store of outcomes. `folder` is the table's quarantine path."""

    def read(self, folder: str) -> Outcome | None: ...

    def write(self, folder: str, outcome: Outcome) -> None: ...

    def clear(self, folder: str) -> None:
        """Remove the outcome, if there is one."""
