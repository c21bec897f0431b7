"""A run over the derived tables: each after the tables that it reads, once or again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from spark_app.derive.derived_table import DerivedTable
from spark_app.derive.input_tables import InputMissing
from spark_app.derive.spark_words import words_of
from spark_app.reports import Blocked, CaughtUp, Committed, Failed, ProgressWriter, Started, Stopped
from spark_app.run.outcome import Outcome, OutcomeStore, State
from tributary.contract.derivations import Derivation, Derivations
from tributary.contract.derived import derived_table
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import remedies_for_table

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 5.0, 120.0


class Advanced(Protocol):
    """A derived table in a run."""

    table: DerivedTable

    def recover(self) -> None:
        """Read how far the table is."""

    def advance(self) -> Committed | None:
        """Bring the table up to date, and report each commit.

        Return the last commit, or None if nothing has changed."""


@dataclass
class _Turn:
    """A derived table's state in the run.

    advanced  None: it has to be opened, at first and after an error
    error     None if its last turn went well
    """

    digest: str
    advanced: Advanced | None = None
    attempts: int = 0
    not_before: float = 0.0
    error: str | None = None


@dataclass
class DeriveRun:
    """Brings derived tables up to date.

    read         read the derived tables, again at each round: their queries may change
    open         return the table of a derivation, to be advanced
    offer        show a table in the catalog; the second argument tells whether it may have changed
    """

    read: Callable[[], Derivations]
    open: Callable[[Derivation], Advanced]
    offer: Callable[[DerivedTable, bool], None]
    progress: ProgressWriter
    outcomes: OutcomeStore
    quarantine_of: Callable[[str], str]
    follow: bool
    is_stopped: Callable[[], bool]
    poll_seconds: float = 1.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _turns: dict[str, _Turn] = field(default_factory=dict, init=False)
    _told: dict[str, str] = field(default_factory=dict, init=False)

    def run(self) -> bool:
        """Return whether all tables are up to date and well at the end."""
        while True:
            found = self.read()
            names = [one.name for one in found.ordered]
            self._start(names, found.errors)
            has_committed = [self._turn(one) for one in found.ordered if not self.is_stopped()]
            if not self.follow or self.is_stopped():
                break
            if not any(has_committed):
                self.sleep(self.poll_seconds)
        outcomes = {str(derived_table(name)): turn.error or "ok" for name, turn in self._turns.items()} | {
            str(derived_table(name)): error.reason for name, error in found.errors.items()
        }
        self.progress.write(Stopped(outcomes))
        return all(outcome == "ok" for outcome in outcomes.values())

    def _start(self, names: list[str], errors: Mapping[str, TributaryError]) -> None:
        """Report tables that are new in the run, and those whose query cannot be used."""
        if new := [name for name in (*names, *errors) if name not in self._turns and name not in self._told]:
            self.progress.write(Started(tuple(str(derived_table(name)) for name in new)))
        for name in self._turns.keys() - set(names):
            del self._turns[name]
        for name, error in errors.items():
            if self._told.get(name) != error.reason:
                self._told[name] = error.reason
                self._report(name, error)
        for name in names:
            self._told.pop(name, None)

    def _turn(self, derivation: Derivation) -> bool:
        """Advance one table. Return whether it has made a commit."""
        turn = self._turns.get(derivation.name)
        if turn is None or turn.digest != derivation.digest:
            turn = self._turns[derivation.name] = _Turn(derivation.digest)
        if self.clock() < turn.not_before:
            return False
        try:
            advanced, is_new = turn.advanced, turn.advanced is None
            if advanced is None:
                advanced = self.open(derivation)
                advanced.recover()
                turn.advanced = advanced
            committed = advanced.advance()
            self.offer(advanced.table, is_new or committed is not None)
            advanced.table.serve()
        except (TributaryError, PySparkException, Py4JJavaError, OSError) as error:
            self._failed(derivation.name, turn, error)
            return False
        if turn.error is not None or turn.attempts == 0:
            self.outcomes.clear(self.quarantine_of(derivation.name))
        turn.error, turn.attempts = None, 1
        if not self.is_stopped():
            self.progress.write(CaughtUp(str(derived_table(derivation.name))))
        return committed is not None

    def _failed(self, name: str, turn: _Turn, error: Exception) -> None:
        told = told_to_person(error)
        turn.attempts += 1
        turn.advanced = None
        wait = min(FIRST_RETRY_SECONDS * 2 ** min(turn.attempts - 1, 10), LONGEST_RETRY_SECONDS)
        turn.not_before = self.clock() + wait
        is_new = turn.error != told.reason
        turn.error = told.reason
        # An input that is not there yet needs no person.
        waits = self.follow and isinstance(error, InputMissing)
        if is_new and not waits:
            self._report(name, told)
        elif self.follow:
            if is_new:
                self._store(name, "retrying", told)
            self.progress.write(Failed(str(derived_table(name)), told.reason, turn.attempts, wait))

    def _report(self, name: str, error: TributaryError) -> None:
        table = str(derived_table(name))
        self._store(name, "blocked", error)
        self.progress.write(Blocked(table, error.reason, remedies_for_table(error.remedies, table)))

    def _store(self, name: str, state: State, error: TributaryError) -> None:
        folder = self.quarantine_of(name)
        outcome = Outcome.of(state, error, self.outcomes.read(folder), str(derived_table(name)))
        self.outcomes.write(folder, outcome)


def told_to_person(error: Exception) -> TributaryError:
    """Return the error as a sentence for a person. Spark's own message comes first, without its plan."""
    if isinstance(error, TributaryError):
        return error
    if isinstance(error, PySparkException):
        return TributaryError("Spark cannot run the query", found=words_of(error))
    return TributaryError("the table could not be brought up to date", found=words_of(error))
