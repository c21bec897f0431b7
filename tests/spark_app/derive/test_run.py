"""Each derived table comes after the tables that it reads, and an error stops only its own table."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from spark_app.derive.derived_table import DerivedTable
from spark_app.derive.input_tables import InputMissing, missing_input
from spark_app.derive.record import RECORD_KEY, Record, commit_metadata
from spark_app.derive.run import DeriveRun
from spark_app.ledger.ledger import LEDGER_KEY, Ledger
from spark_app.reports import Committed, ProgressWriter
from spark_app.run.outcome import Outcome
from tests.contract.test_derived import derived, lake
from tributary.contract.derivations import (
    Derivation,
    Derivations,
    DerivedInput,
    LakeInput,
    read_derivations,
)
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import in_words
from tributary.operations.remedy_words import remedy_words


@dataclass
class FakeAdvanced:
    """Stands for a table whose commits take no time. Its next turns raise the `failures`, one each."""

    name: str
    turns: list[str]
    failures: list[Exception] = field(default_factory=list)
    table: DerivedTable = field(
        default_factory=lambda: cast(DerivedTable, SimpleNamespace(serve=lambda: None))
    )

    def recover(self) -> None:
        """There is no record."""

    def advance(self) -> Committed | None:
        self.turns.append(self.name)
        if self.failures:
            raise self.failures.pop(0)
        return None


@dataclass
class Outcomes:
    written: dict[str, Outcome] = field(default_factory=dict)

    def read(self, folder: str) -> Outcome | None:
        return self.written.get(folder)

    def write(self, folder: str, outcome: Outcome) -> None:
        self.written[folder] = outcome

    def clear(self, folder: str) -> None:
        self.written.pop(folder, None)


@dataclass
class Run:
    """A run over the lake file's text, which ends after some rounds."""

    text: str
    rounds: int = 1
    failures: Mapping[str, list[Exception]] = field(default_factory=dict)
    now: float = 0.0
    turns: list[str] = field(default_factory=list)
    opens: list[str] = field(default_factory=list)
    outcomes: Outcomes = field(default_factory=Outcomes)
    out: io.StringIO = field(default_factory=io.StringIO)
    at_round: Callable[[int], None] = lambda _: None
    _read: int = 0

    def run(self) -> bool:
        def sleep(seconds: float) -> None:
            self.now += seconds

        return DeriveRun(
            read=self.read,
            open=self.open,
            offer=lambda *_: None,
            progress=ProgressWriter(self.out),
            outcomes=self.outcomes,
            quarantine_of=lambda name: name,
            follow=self.rounds > 1,
            is_stopped=lambda: self._read > self.rounds,
            clock=lambda: self.now,
            sleep=sleep,
        ).run()

    def read(self) -> Derivations:
        self._read += 1
        self.at_round(self._read)
        return read_derivations(lake(self.text), Path())

    def open(self, derivation: Derivation) -> FakeAdvanced:
        self.opens.append(derivation.name)
        return FakeAdvanced(derivation.name, self.turns, self.failures.get(derivation.name, []))

    @property
    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


TWO = derived("late", "SELECT id FROM early") + derived("early", "SELECT id FROM orders")


def test_a_table_has_its_turn_after_those_that_it_reads() -> None:
    run = Run(TWO)
    assert run.run()
    assert run.turns == ["early", "late"]
    assert run.reports[-1]["tables"] == {"derived.tables.early": "ok", "derived.tables.late": "ok"}


def test_a_run_that_follows_waits_for_an_input_that_is_not_there_yet() -> None:
    missing = InputMissing("the lake has no table orders yet")
    kept: list[Outcome | None] = []
    run = Run(TWO, rounds=20, failures={"early": [missing, missing]})
    run.at_round = lambda _: kept.append(run.outcomes.written.get("early"))
    assert run.run()
    assert {outcome.state for outcome in kept if outcome is not None} == {"retrying"}
    assert run.outcomes.written == {}
    told = [report["event"] for report in run.reports if report.get("table") == "derived.tables.early"]
    assert told[:3] == ["failed", "failed", "caught_up"]


def test_the_remedy_for_a_missing_input_names_the_input_not_the_table_that_reads_it() -> None:
    failures: dict[str, list[Exception]] = {
        "early": [missing_input(LakeInput(("public", "orders")))],
        "late": [missing_input(DerivedInput("early"))],
    }
    run = Run(TWO, failures=failures)
    assert not run.run()
    early, late = (in_words(run.outcomes.written[name].remedies, remedy_words) for name in ("early", "late"))
    assert "tributary ingest --tables public.orders." in early
    assert "derived" not in early
    assert "early has an error, mend that first" in late
    assert "ingest" not in late


def test_an_error_blocks_only_its_own_table_and_is_kept_for_a_person() -> None:
    run = Run(TWO, failures={"early": [TributaryError("no luck", remedy="Try again.")]})
    assert not run.run()
    assert run.turns == ["early", "late"]
    assert run.outcomes.written["early"].reason == "no luck."
    assert run.reports[-1]["tables"]["derived.tables.late"] == "ok"


def test_a_query_that_cannot_be_read_is_reported_once_and_all_others_run() -> None:
    run = Run(TWO + derived("bad", "SELECT now() AS id FROM orders"), rounds=3)
    assert not run.run()
    assert [one["table"] for one in run.reports if one["event"] == "blocked"] == ["derived.tables.bad"]
    assert "bad" in run.outcomes.written
    assert run.turns.count("early") == 3


def test_a_failed_table_is_tried_again_later_from_its_record_and_then_has_no_error() -> None:
    run = Run(TWO, rounds=9, failures={"early": [OSError("no connection")]})
    assert run.run()
    assert run.opens.count("early") == 2, "it has read its record again"
    assert run.turns.count("late") == 9
    assert run.turns.count("early") == 5, "it waited for five seconds, a round of a second each"
    assert not run.outcomes.written


def test_a_changed_query_is_taken_up_by_a_run_that_follows() -> None:
    run = Run(TWO, rounds=3)

    def change(number: int) -> None:
        if number == 2:
            run.text = TWO.replace("SELECT id FROM orders", "SELECT id, amount FROM orders")

    run.at_round = change
    assert run.run()
    assert run.opens == ["early", "late", "early"]


def test_a_commit_has_the_record_and_a_ledger_for_those_who_list_commits() -> None:
    record = Record("digest", 7, inputs={"shop.public.orders": "20260101000000000"}, offsets={"t": {"0": 5}})
    metadata = commit_metadata(record, "t", events=3, deletes=1)
    assert Record.from_json(metadata[RECORD_KEY]) == record
    ledger = Ledger.from_json(metadata[LEDGER_KEY])
    assert (ledger.topic, ledger.positions, ledger.events, ledger.deletes) == ("t", {0: 5}, 3, 1)
    assert Record.from_json('{"version": 99}') is None
