"""Hidden columns that a table lacks, or that identify its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TypeVar

from connectors.engines.definitions import TableDefinition
from connectors.engines.engine import DatabaseNotReady
from tributary.contract.lake import TablePolicy
from tributary.contract.table_name import TableName

NotReadyT = TypeVar("NotReadyT", bound=DatabaseNotReady)


def hidden_column_problems(
    name: TableName,
    policy: TablePolicy,
    columns: Collection[str],
    key: Collection[str],
    error: type[NotReadyT],
) -> Iterator[NotReadyT]:
    """Yield what is wrong with the hidden columns of a table with these columns and this key."""
    hidden = policy.hidden
    for column in sorted(hidden.all & set(key)):
        yield error(
            "a column of the key cannot be left out, masked or hashed",
            where=f'[table."{name}"]',
            found=f"the key column {column}",
            expected="columns that do not identify a row",
            remedy=f'Set another key, or leave the table out with "!{name.schema}.{name.table}".',
        )
    for column in sorted(hidden.required - set(columns)):
        yield error(
            "a column to leave out, mask or hash does not exist, or has another name now",
            where=f'[table."{name}"]',
            found=column,
            expected=f"one of {', '.join(columns)}",
            remedy=f'Write its new name. If it is gone for good, or not there yet, write "{column}?".',
        )


def as_taken(definition: TableDefinition, policy: TablePolicy) -> TableDefinition:
    """Return the definition without what the lake does not take, and with how it takes the rest."""
    hidden = policy.hidden
    columns = tuple(column for column in definition.columns if column.name not in hidden.left_out)
    taken = " ".join(filter(None, (hidden.fingerprint, policy.rows)))
    return replace(definition, columns=columns, taken=taken)
