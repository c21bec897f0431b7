"""Show what is known of verified tables to a person, or as JSON values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tributary.operations.verify.record import FoundRow, Verification

_EXAMPLES = 10


def is_different(found: Verification | None) -> bool:
    """Return whether the table differs from its source."""
    return found is not None and found.differences > 0


def verified_as_of(found: Verification | None) -> datetime | None:
    """Return the time as of which the whole table equals its source, if there is one."""
    return None if found is None or found.equal_us is None else _moment(found.equal_us)


def verified_text(found: Verification | None) -> str:
    """Return, for a table of tables, since when the table is verified."""
    if found is None or not found.looked_us:
        return "-"
    if found.differences:
        return f"{found.differences:,} differ"
    if (moment := verified_as_of(found)) is not None:
        return f"{moment:%Y-%m-%d %H:%M:%S}"
    if found.problem is not None or not found.rows:
        return "not yet"
    return f"{100 * found.rows_proven // found.rows} % of its rows"


SNAPSHOT = "tributary snapshot"
"""The command that reads tables again."""
SNAPSHOT_ON_AWS = f"{SNAPSHOT} --aws"
QUARANTINE_ON_AWS = "tributary console --aws"
"""The command whose pages show the quarantine of a deployed lake."""


def sentence(found: Verification, snapshot: str = SNAPSHOT) -> str:
    """Return what a person should know about the table. `snapshot` is the command for this lake."""
    table = found.table
    if found.differences:
        parts = [f"{table}: {_rows(found.differences)} from the source."]
        if found.cause:
            parts.append(found.cause)
        if found.repair_us is not None:
            parts.append(f"It was to be read again at {_text(found.repair_us)}.")
        when = "If it still differs after that" if found.quarantined else "To read it again"
        parts.append(f"{when}, run {command(found, snapshot)}")
        return " ".join(parts)
    moment = verified_as_of(found)
    if found.problem is not None:
        last = "" if moment is None else f" It last equaled its source as of {_shown(moment)}."
        return f"{table}: not verified, because {found.problem.removesuffix('.')}.{last}"
    flight = ""
    if found.in_flight:
        flight = f", except {found.in_flight:,} rows that changed during each look"
    if moment is not None:
        return f"{table}: equals its source as of {_shown(moment)}{flight} ({found.rows:,} rows)."
    share = 100 * found.rows_proven // found.rows if found.rows else 0
    return f"{table}: {share} % of {found.rows:,} rows are verified so far{flight}."


def row_text(row: FoundRow) -> str:
    """`(id='7') is different in the lake: price is '10' in the database, '12' in the lake`."""
    key = ", ".join(f"{name}={value}" for name, value in row.key.items())
    cells = "; ".join(
        f"{name} is {database} in the database, {lake} in the lake"
        for name, (database, lake) in row.cells.items()
    )
    return f"({key}) is {_KINDS[row.kind]}{': ' if cells else ''}{cells}"


def command(found: Verification, snapshot: str = SNAPSHOT) -> str:
    return f"{snapshot} '{found.table}'"


def quarantine_command(found: Verification) -> str:
    return f"tributary quarantine list '{found.table}'"


def cause_of(found: Verification, quarantined: int) -> str:
    """Return the likely cause of a table's differences, as sentences."""
    if quarantined:
        be, they = ("is", "it was") if quarantined == 1 else ("are", "they were")
        return (
            f"{quarantined:,} of its events {be} in quarantine, so the likely cause is that {they} not "
            "applied. Correct the rows in the database, or replay the events once they can be read: see "
            f"{quarantine_command(found)}."
        )
    kinds = {row.kind for row in found.found}
    columns = {name for row in found.found for name in row.cells}
    if kinds == {"changed"} and len(columns) == 1:
        (column,) = columns
        return (
            f"Only the column {column} differs, so it probably changed without an event, for example by a "
            "default of an added column."
        )
    if kinds == {"missing"}:
        return (
            "All of them are missing in the lake, so the likely cause is an insert without an event, for "
            "example an attached partition, or a connector that lost its position."
        )
    if kinds == {"extra"}:
        return (
            "None of them is in the source, so the likely cause is a delete without an event, for example a "
            "dropped or detached partition, or a connector that lost its position."
        )
    if kinds == {"repeated"}:
        return "Their keys are more than once in the lake, so its files are damaged: rebuild the table."
    return "The likely cause is a connector that lost its position, or a change of the lake's files."


def verification_facts(found: Verification | None, snapshot: str = SNAPSHOT) -> dict[str, Any] | None:
    """Return the facts as JSON values. `snapshot` is the command for this lake."""
    if found is None:
        return None
    moment = verified_as_of(found)
    return {
        "table": str(found.table),
        "equal_as_of": None if moment is None else _shown(moment),
        "looked_at": _text(found.looked_us) if found.looked_us else None,
        "rows": found.rows,
        "rows_verified": found.rows_proven,
        "rows_checked": found.checked_rows,
        "rows_in_flight": found.in_flight,
        "differences": found.differences,
        "examples": [
            {"key": dict(row.key), "kind": row.kind, "cells": {n: list(v) for n, v in row.cells.items()}}
            for row in found.found
        ],
        "cause": found.cause,
        "remedy": _remedy(found, snapshot),
        "repair_asked_at": None if found.repair_us is None else _text(found.repair_us),
        "problem": found.problem,
        "uncompared_columns": list(found.uncompared),
        "seconds": found.seconds,
        "database_seconds": found.database_seconds,
    }


def _remedy(found: Verification, snapshot: str) -> str | None:
    if not found.differences:
        return None
    if not found.quarantined:
        return command(found, snapshot)
    return quarantine_command(found) if snapshot == SNAPSHOT else QUARANTINE_ON_AWS


def examples_of(found: Verification) -> list[str]:
    """Return some of the differences, each as a text."""
    texts = [row_text(row) for row in found.found[:_EXAMPLES]]
    if found.differences > len(texts):
        texts.append(f"and {found.differences - len(texts):,} more")
    return texts


_KINDS = {
    "missing": "missing in the lake",
    "extra": "not in the database",
    "repeated": "more than once in the lake",
    "changed": "different in the lake",
}


def _rows(number: int) -> str:
    return "1 row differs" if number == 1 else f"{number:,} rows differ"


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)


def _shown(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _text(microseconds: int) -> str:
    return _shown(_moment(microseconds))
