"""How it is told that a table is not well: to a person, and to a program."""

from __future__ import annotations

from collections.abc import Mapping

from spark_app.run.outcome import Outcome
from tributary.cli.rendering import output
from tributary.contract.table_name import TableName


def outcome_facts(outcome: Outcome | None) -> Mapping[str, str | None]:
    """None is the outcome of a table that is well."""
    return {
        "state": outcome.state if outcome else "well",
        "since": outcome.since if outcome else None,
        "reason": outcome.reason if outcome else None,
        "remedy": outcome.remedy if outcome else None,
    }


def tell_outcome(table: TableName, outcome: Outcome) -> None:
    """A paragraph with the reason and the remedy."""
    text = f"{table} is {outcome.state} since {outcome.since}: {outcome.reason} {outcome.remedy or ''}"
    output.print()
    output.print(text.rstrip(), style="red", markup=False, highlight=False, soft_wrap=True)
