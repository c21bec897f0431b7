"""What the rows of a database look like after its connector has hidden columns and rows."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from connectors.engines.engine import DatabaseColumn, DatabaseTable
from connectors.engines.forms import BOOLEAN, BYTES, INTEGER, TEXT, Form, as_it_is, is_text
from tributary.contract.hidden_columns import MASK, HiddenColumns
from tributary.contract.lake import TablePolicy


def _shown(value: str | None) -> str:
    is_hidden = value is None or value == MASK or re.fullmatch(r"[0-9a-f]{64}", value)
    return repr(value) if is_hidden else "a value in clear text"


# A row from before a column was added has NULL in the lake.
_MASKED = Form("mask", pa.string(), lambda value: f"coalesce({value}, '{MASK}')", is_text, _shown)
_HASHED = Form("hash", pa.string(), as_it_is, is_text, _shown)

# Forms that are the values as the connector sends them.
_AS_SENT: dict[str, Callable[[Any], bytes]] = {
    TEXT.name: lambda value: value.encode(),
    BYTES.name: bytes,
    INTEGER.name: lambda value: str(value).encode(),
    BOOLEAN.name: lambda value: str(value).lower().encode(),
}


@dataclass(frozen=True)
class Hiding:
    """How the connector hides columns and rows of one table.

    table  the database's table
    lake   the columns of its lake table
    salt   of the hashes; None: no table of the lake has any
    """

    policy: TablePolicy
    table: DatabaseTable
    lake: pa.Schema
    salt: bytes | None

    @property
    def _hidden(self) -> HiddenColumns:
        return self.policy.hidden

    @property
    def left_out(self) -> tuple[str, ...]:
        """The database's columns that the connector leaves out."""
        return tuple(column.name for column in self.table.columns if column.name in self._hidden.left_out)

    @property
    def sent(self) -> DatabaseTable:
        """The table as the connector sends it."""
        if not self._hidden.all:
            return self.table
        columns = tuple(self._sent(column) for column in self.table.columns if self._is_sent(column.name))
        return replace(self.table, columns=columns)

    def read(
        self,
        read_rows: Callable[[DatabaseTable, Iterable[str]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows that the connector sends, in comparable form, with the columns of the schema."""
        needed = [name for name in schema.names if name not in self._hidden.masked]
        for batch in read_rows(self.table_to_read, needed):
            arrays = [self._array(name, batch) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    @property
    def table_to_read(self) -> DatabaseTable:
        """The database's table, with the condition of the rows that the connector sends."""
        return replace(self.table, condition=self.policy.rows)

    @property
    def hashes(self) -> bool:
        """Tell whether a column is hashed, which only this process can do."""
        return bool(self._hidden.hashed)

    def is_hidden(self, column: str) -> bool:
        """Tell whether the lake has no value of this column in clear text."""
        return column in self._hidden.all

    def is_hashed(self, column: str) -> bool:
        """Tell whether the lake has hashes of the column's values."""
        return column in self._hidden.hashed

    def expression(self, column: DatabaseColumn) -> str:
        """Return the SQL of a sent column's comparable form. Hashed columns have none."""
        assert not self.is_hashed(column.name), "no database knows the salt"
        return f"'{MASK}'" if column.name in self._hidden.masked else column.expression

    def where(self, condition: str) -> Hiding:
        """Return the same for other rows of the table."""
        return replace(self, policy=self.policy.model_copy(update={"rows": condition}))

    def _is_sent(self, column: str) -> bool:
        is_unheard = column in self._hidden.masked and column not in self.lake.names
        return column not in self._hidden.left_out and not is_unheard

    def _sent(self, column: DatabaseColumn) -> DatabaseColumn:
        if column.name in self._hidden.masked:
            return replace(column, type="a mask", form=_MASKED)
        if column.name in self._hidden.hashed:
            is_hashable = column.form is not None and column.form.name in _AS_SENT
            return replace(column, type="a hash", form=_HASHED if is_hashable else None)
        return column

    def _array(self, name: str, batch: pa.RecordBatch) -> pa.Array:
        if name in self._hidden.masked:
            return pa.array([MASK] * batch.num_rows, pa.string())
        values = batch.column(name)
        if name not in self._hidden.hashed:
            return values
        assert self.salt is not None, "a lake that hashes columns has a salt"
        forms = {column.name: column.form for column in self.table.columns}
        form = forms[name]
        assert form is not None, "only columns with a form are compared"
        as_bytes = _AS_SENT[form.name]
        return pa.array(
            [
                None if value is None else hmac.digest(self.salt, as_bytes(value), "sha256").hex()
                for value in values.to_pylist()
            ],
            pa.string(),
        )
