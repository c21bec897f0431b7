"""Parts of MySQL's and MariaDB's tables (`connectors.engines.checksums`). Their rows are read, not summed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pymysql

from connectors.engines.binlog.reading import one_snapshot
from connectors.engines.binlog.session import Session, execute, told_by
from connectors.engines.binlog.sql import identifier
from connectors.engines.checksums import (
    BUCKET_DIGITS,
    Between,
    CheckedColumn,
    KeyValues,
    Part,
    TableParts,
)
from connectors.engines.engine import DatabaseTable, RowsUnreadable
from connectors.engines.forms import INTEGER


@dataclass(frozen=True)
class BinlogParts(TableParts[Session]):
    """How these engines split a table.

    time_limit  a statement that limits the time of later ones, with a place for milliseconds
    no_limit    a statement that ends that
    """

    time_limit: str
    no_limit: str

    def sorted_columns(
        self,
        session: Session,  # noqa: ARG002  The types say enough.
        table: DatabaseTable,
        key: tuple[str, ...],
    ) -> tuple[str, ...]:
        """Return the columns of whole numbers that fit 64 bits with a sign."""
        columns = {column.name: column for column in table.columns}
        found: list[str] = []
        for name, own in zip(key, table.primary_key, strict=False):
            column = columns[name]
            if name != own or column.form is not INTEGER or "int" not in column.type:
                break
            found.append(name)
        return tuple(found)

    @contextmanager
    def limited(self, session: Session, seconds: float) -> Iterator[None]:
        try:
            execute(session, self.time_limit.format(milliseconds=round(seconds * 1000), seconds=seconds))
            try:
                with one_snapshot(session):
                    yield
            finally:
                if session.open:
                    execute(session, self.no_limit)
        except pymysql.Error as error:
            if not session.open:
                raise
            raise RowsUnreadable(told_by(error)) from error

    def condition(self, table: DatabaseTable, columns: Sequence[CheckedColumn], part: Part) -> str:
        if isinstance(part, Between):
            return _between(part)
        by_name = {column.name: column for column in columns}
        texts = ", ".join(_text(table, by_name[name]) for name in part.key)
        digits = f"left(sha2(concat({texts}), 256), {BUCKET_DIGITS})"
        return f"CAST(conv({digits}, 16, 10) AS UNSIGNED) % {part.of} = {part.number}"


def _between(part: Between) -> str:
    limits = []
    if part.after is not None:
        limits.append(f"NOT {_not_after(part.columns, part.after)}")
        # Without it, the server would not begin at this place of the index.
        limits.append(f"{identifier(part.columns[0])} >= {part.after[0]}")
    if part.upto is not None:
        limits.append(_not_after(part.columns, part.upto))
        limits.append(f"{identifier(part.columns[0])} <= {part.upto[0]}")
    return " AND ".join(limits) or "true"


def _not_after(columns: Sequence[str], values: KeyValues) -> str:
    name, value = identifier(columns[0]), values[0]
    if len(columns) == 1:
        return f"({name} <= {value})"
    return f"({name} < {value} OR ({name} = {value} AND {_not_after(columns[1:], values[1:])}))"


def _text(table: DatabaseTable, column: CheckedColumn) -> str:
    """Return the expression for a key value's canonical text, as `canonical_text` has it for DuckDB."""
    value, kind = column.expression, column.type
    if pa.types.is_string(kind):
        text = f"concat(length({value}), ':', {value})"
    elif pa.types.is_binary(kind):
        text = f"concat(lower(hex({value})), ';')"
    elif pa.types.is_boolean(kind):
        text = f"if({value}, 'true;', if(({value}) IS NULL, NULL, 'false;'))"
    elif pa.types.is_integer(kind):
        text = f"concat({value}, ';')"
    else:
        raise RowsUnreadable(f"keys of the type of {table.schema}.{table.name}.{column.name} cannot be split")
    return f"coalesce({text}, '-')"
