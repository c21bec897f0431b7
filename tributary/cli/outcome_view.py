"""Show a table's error to a person, or as JSON values."""

from __future__ import annotations

from collections.abc import Mapping

from spark_app.run.outcome import Outcome
from tributary.cli.rendering import output
from tributary.contract.remedies import Words, in_words
from tributary.contract.table_name import TableName


def outcome_facts(outcome: Outcome | None, words: Words) -> Mapping[str, str | None]:
    """Return the facts of a table's outcome. An outcome of None means that the table has no error."""
    return {
        "state": outcome.state if outcome else "well",
        "since": outcome.since if outcome else None,
        "reason": outcome.reason if outcome else None,
        "remedy": in_words(outcome.remedies, words) or None if outcome else None,
    }


def print_outcome(table: TableName, outcome: Outcome, words: Words) -> None:
    """Print a paragraph with the reason and, in the words of a surface, what to do."""
    remedy = in_words(outcome.remedies, words)
    text = f"{table} is {outcome.state} since {outcome.since}: {outcome.reason} {remedy}"
    output.print()
    output.print(text.rstrip(), style="red", markup=False, highlight=False, soft_wrap=True)
