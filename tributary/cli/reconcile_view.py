"""Show the findings of a reconciliation to a person, or as JSON values."""

from __future__ import annotations

from typing import Any

from tributary.cli.rendering import output
from tributary.operations.reconcile.comparison import Difference
from tributary.operations.reconcile.pairing import Pairing
from tributary.operations.reconcile.proof import Reconciliation, TableProof

_EXAMPLES = 10


def print_findings(found: Reconciliation) -> None:
    """Print one line if the lake is identical. Otherwise print each table's differences, with examples."""
    for table in found.tables:
        _print_table(table)
    tables = "1 table" if len(found.tables) == 1 else f"{len(found.tables)} tables"
    count = f"{tables}, {found.rows:,} rows"
    if found.identical:
        output.print(f"{count}, identical", style="green", highlight=False)
        return
    wrong = sum(not table.identical for table in found.tables)
    output.print(f"{count}, {wrong} {'table is' if wrong == 1 else 'tables are'} not identical", style="red")


def reconciliation_facts(found: Reconciliation) -> dict[str, Any]:
    """Return the findings as JSON values, with every difference."""
    return {
        "identical": found.identical,
        "rows": found.rows,
        "tables": [
            {
                "table": str(table.name),
                "identical": table.identical,
                "rows": table.findings.rows,
                "problem": table.problem,
                "differences": [_facts(one, table.pairing) for one in table.findings.differences],
                "unsettled": [_facts(one, table.pairing) for one in table.findings.unsettled],
                "mismatched_columns": dict(table.pairing.mismatched) if table.pairing else {},
                "uncompared_columns": list(table.pairing.uncompared) if table.pairing else [],
                "left_out_columns": list(table.pairing.left_out) if table.pairing else [],
                "dropped_columns": list(table.pairing.dropped) if table.pairing else [],
            }
            for table in found.tables
        ],
    }


def _print_table(table: TableProof) -> None:
    if table.problem is not None:
        _say(f"{table.name}: cannot be compared: {table.problem}", "red")
        return
    if table.pairing is None:
        return
    for column, reason in table.pairing.mismatched.items():
        _say(f"{table.name}: column {column} is not compared: {reason}", "red")
    if table.pairing.uncompared:
        columns = ", ".join(table.pairing.uncompared)
        _say(f"{table.name}: not compared, because their type has no exact form: {columns}", "yellow")
    if table.pairing.left_out:
        columns = ", ".join(table.pairing.left_out)
        _say(f"{table.name}: not compared, because the lake file leaves them out: {columns}", "dim")
    if table.pairing.dropped:
        _say(
            f"{table.name}: in the lake only, dropped in the source: {', '.join(table.pairing.dropped)}",
            "dim",
        )
    for title, differences in (
        ("differ", table.findings.differences),
        ("were written to during every comparison, so they could not be judged", table.findings.unsettled),
    ):
        if differences:
            _say(f"{table.name}: {len(differences):,} of {table.findings.rows:,} rows {title}", "red")
        for one in differences[:_EXAMPLES]:
            _say(f"  {difference_text(one, table.pairing)}", "")
        if len(differences) > _EXAMPLES:
            _say(f"  and {len(differences) - _EXAMPLES:,} more", "")


def difference_text(difference: Difference, pairing: Pairing) -> str:
    """`(listid=7) is different in the lake: price is '10' in the database, '12' in the lake`."""
    key = ", ".join(
        f"{column}={_shown(pairing, column, value)}"
        for column, value in zip(pairing.key, difference.key, strict=True)
    )
    cells = "; ".join(
        f"{cell.column} is {_shown(pairing, cell.column, cell.database)} in the database, "
        f"{_shown(pairing, cell.column, cell.lake)} in the lake"
        for cell in difference.cells
    )
    return f"({key}) is {difference.kind.value}{': ' if cells else ''}{cells}"


def _facts(difference: Difference, pairing: Pairing | None) -> dict[str, Any]:
    assert pairing is not None, "only rows that were compared differ"
    return {
        "key": {
            column: _shown(pairing, column, value)
            for column, value in zip(pairing.key, difference.key, strict=True)
        },
        "kind": difference.kind.name.lower(),
        "cells": {
            cell.column: {
                "database": _shown(pairing, cell.column, cell.database),
                "lake": _shown(pairing, cell.column, cell.lake),
            }
            for cell in difference.cells
        },
    }


def _shown(pairing: Pairing, column: str, value: Any) -> str:
    return pairing.forms[column].show(value)


def _say(text: str, style: str) -> None:
    output.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
