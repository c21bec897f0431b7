"""Pair the columns of the lake and the database that can be compared, and explain the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from connectors.engines.engine import DatabaseTable
from connectors.engines.forms import Form
from tributary.contract.column_names import OWN_COLUMNS

_DELETED = "_deleted"


@dataclass(frozen=True)
class Pairing:
    """The columns of a table that are compared, and those that are not.

    forms       the columns that are compared, in the database's order
    unheard     columns that the lake does not have yet, because nothing has been written to them since they
                were added; they are compared with nulls
    dropped     columns that only the lake still has
    mismatched  columns whose types do not belong together, with the reason
    uncompared  columns of a type whose values cannot be compared exactly
    left_out    columns that never leave the database
    """

    key: tuple[str, ...]
    forms: Mapping[str, Form]
    unheard: tuple[str, ...]
    dropped: tuple[str, ...]
    mismatched: Mapping[str, str]
    uncompared: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def key_problem(self) -> str | None:
        """Return why the key cannot identify the rows on both sides. None: it can."""
        if not self.key:
            return "it has no primary key, and lake.toml sets no key for it"
        for column in self.key:
            if column in self.mismatched:
                return f"its key column {column} cannot be compared: {self.mismatched[column]}"
            if column in self.uncompared:
                return (
                    f"its key column {column} cannot be compared: values of its type have no form that is "
                    "the same in the database and in the lake"
                )
            if column not in self.forms:
                return f"its key column {column} is not in both the database and the lake"
        return None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, form.arrow) for name, form in self.forms.items()])


def pair(
    table: DatabaseTable, lake: pa.Schema, key: tuple[str, ...], left_out: tuple[str, ...] = ()
) -> Pairing:
    """Pair the columns of a database table with those of its lake table.

    `table` does not have the columns in `left_out`.
    """
    forms: dict[str, Form] = {}
    mismatched: dict[str, str] = {}
    uncompared: list[str] = []
    unheard: list[str] = []
    for column in table.columns:
        form = column.form
        place = lake.get_field_index(column.name)
        if form is None:
            uncompared.append(column.name)
        elif place < 0:
            forms[column.name] = form
            unheard.append(column.name)
        elif form.reads(lake.field(place).type):
            forms[column.name] = form
        else:
            mismatched[column.name] = f"{column.type} in the database is {lake.field(place).type} in the lake"
    stored = {*left_out, *(column.name for column in table.columns)}
    dropped = [name for name in lake.names if name not in stored and name not in OWN_COLUMNS]
    return Pairing(key, forms, tuple(unheard), tuple(dropped), mismatched, tuple(uncompared), left_out)


def comparable_lake_rows(lake: pa.Table, pairing: Pairing) -> Iterator[pa.RecordBatch]:
    """Return the lake's rows in comparable form, without soft-deleted rows."""
    if not lake.column_names:
        return  # The lake does not have this table, and DuckDB has no tables without columns.
    # A form's expression may name the parameter of a lambda. These names equal none.
    places = {name: f'"column {number}"' for number, name in enumerate(pairing.forms)}
    present = [name for name in pairing.forms if name not in pairing.unheard]
    stored = ", ".join(["1", *(f"{_quoted(name)} AS {places[name]}" for name in present)])
    columns = ", ".join(
        f"{form.lake(places[name]) if name in present else 'NULL'} AS {_quoted(name)}"
        for name, form in pairing.forms.items()
    )
    condition = f"WHERE NOT {_DELETED}" if _DELETED in lake.column_names else ""
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.register("lake", lake)
        found = engine.sql(f"SELECT {columns} FROM (SELECT {stored} FROM lake {condition})").to_arrow_table()
    yield from found.cast(pairing.schema).to_batches()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
