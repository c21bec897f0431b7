"""Checksums of rows that a database and DuckDB compute alike, and the parts of a table that they cover.

A row's checksum is the MD5 of its canonical text. This is the texts of its values in comparable form, one
after the other, each of which shows where it ends. A part's checksum is the number of its rows and the sum of
their checksums, so the order of the rows does not matter. Two sets of rows that differ have the same checksum
with a probability of about 2^-128, unless somebody looks for such sets on purpose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from connectors.engines.engine import DatabaseTable

SessionT = TypeVar("SessionT", bound=AbstractContextManager[Any])

_MODULUS = 2**64

KeyValues = tuple[int | str, ...]
"""The values of some key columns in comparable form."""

CHECKSUM, VERSION = "checksum", "version"
"""The last two columns of `RangeChecksums.read_row_checksums`."""


@dataclass(frozen=True)
class Between:
    """The rows whose key columns `columns` come after `after`, and not after `upto`. None: no limit."""

    columns: tuple[str, ...]
    after: KeyValues | None = None
    upto: KeyValues | None = None


@dataclass(frozen=True)
class Bucket:
    """The rows whose key has this remainder: its hash, divided by `of`."""

    key: tuple[str, ...]
    number: int
    of: int


Part = Between | Bucket


@dataclass(frozen=True)
class Checksum:
    """The number of rows in a part, and the sums of the two halves of their checksums, modulo 2^64."""

    rows: int
    high: int
    low: int

    @classmethod
    def of_sums(cls, rows: int, high: Any, low: Any) -> Checksum:
        """Return the checksum for sums of signed or unsigned halves. None stands for a sum without rows."""
        return cls(rows, int(high or 0) % _MODULUS, int(low or 0) % _MODULUS)


@dataclass(frozen=True)
class CheckedColumn:
    """A column in the checksum.

    expression  computes the value's comparable form, in the engine's language
    type        of the form
    """

    name: str
    expression: str
    type: pa.DataType


class TableParts(ABC, Generic[SessionT]):
    """How an engine splits a table into parts. Its rows can then be read part by part."""

    @abstractmethod
    def sorted_columns(
        self, session: SessionT, table: DatabaseTable, key: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return the first columns of the key that an index sorts like DuckDB sorts their forms.

        These columns have no nulls. The result can be empty.
        """

    @abstractmethod
    def limited(self, session: SessionT, seconds: float) -> AbstractContextManager[None]:
        """Return a context in a snapshot in which no statement runs for longer. Raises RowsUnreadable."""

    @abstractmethod
    def condition(self, table: DatabaseTable, columns: Sequence[CheckedColumn], part: Part) -> str:
        """Return the condition of the part's rows, together with the table's own condition.

        `columns` has the columns of the part. Raises RowsUnreadable.
        """


class RangeChecksums(TableParts[SessionT]):
    """How an engine computes checksums of the parts, too. All methods raise RowsUnreadable."""

    @abstractmethod
    def read_checksums(
        self, session: SessionT, table: DatabaseTable, columns: Sequence[CheckedColumn], parts: Sequence[Part]
    ) -> tuple[Checksum, ...]:
        """Return the checksum of each part of the table."""

    @abstractmethod
    def read_row_checksums(
        self,
        session: SessionT,
        table: DatabaseTable,
        columns: Sequence[CheckedColumn],
        key: tuple[str, ...],
        part: Part,
    ) -> Iterator[pa.RecordBatch]:
        """Read the part's rows: their keys in comparable form, checksums in hexadecimal, and versions.

        A version is a text. It differs from that of any earlier row with the same key, and changes with the
        row.
        """


# The same in DuckDB, for values in comparable form.


def canonical_text(value: str, kind: pa.DataType) -> str:
    """Return DuckDB's expression for the canonical text of a value, which is never null.

    It has to equal what each engine's SQL computes. No text is the beginning of another text.
    """
    return f"coalesce({_text(value, kind, depth=0)}, '-')"


def row_checksum(columns: Sequence[tuple[str, pa.DataType]]) -> str:
    """Return DuckDB's expression for the checksum of a row, as 32 hexadecimal digits.

    `columns` has the expression and the type of each value.
    """
    texts = " || ".join(canonical_text(value, kind) for value, kind in columns)
    return f"md5({texts})"


def sums_of(checksum: str) -> str:
    """Return DuckDB's expressions for the number of rows and both sums of their checksums."""
    halves = (f"sum(('0x' || {half}({checksum}, 16))::UBIGINT)" for half in ("left", "right"))
    return f"count(*), {', '.join(halves)}"


BUCKET_DIGITS = 7
"""How many hexadecimal digits of its key's SHA-256 put a row into a bucket. They fit 32 bits.

MySQL has no MD5 since 9.6.
"""


def place_of(parts: Sequence[Part], columns: dict[str, tuple[str, pa.DataType]]) -> str:
    """Return DuckDB's expression for the place in `parts` of a row's part.

    The parts are all buckets of a table, or all ranges in the order of their keys. `columns` has the
    expression and the type of each key column.
    """
    first = parts[0]
    if isinstance(first, Bucket):
        texts = " || ".join(canonical_text(*columns[name]) for name in first.key)
        return f"CAST(('0x' || left(sha256({texts}), {BUCKET_DIGITS}))::BIGINT % {first.of} AS INTEGER)"
    return _tree([part for part in parts if isinstance(part, Between)], 0, len(parts), columns)


def _tree(
    parts: Sequence[Between], first: int, until: int, columns: dict[str, tuple[str, pa.DataType]]
) -> str:
    if until - first == 1:
        return str(first)
    middle = (first + until) // 2
    upto = parts[middle - 1].upto
    assert upto is not None, "only the last range has no end"
    names = [columns[name][0] for name in parts[middle - 1].columns]
    left, right = _tree(parts, first, middle, columns), _tree(parts, middle, until, columns)
    return f"CASE WHEN {_not_after(names, upto)} THEN {left} ELSE {right} END"


def _not_after(names: Sequence[str], values: KeyValues) -> str:
    name, value, *_ = names[0], _literal(values[0])
    if len(names) == 1:
        return f"{name} <= {value}"
    return f"({name} < {value} OR ({name} = {value} AND {_not_after(names[1:], values[1:])}))"


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _text(value: str, kind: pa.DataType, depth: int) -> str:
    if pa.types.is_list(kind):
        item = f"item{depth}"
        element = f"coalesce({_text(item, kind.value_type, depth + 1)}, '-')"
        return f"'[' || array_to_string(list_transform({value}, lambda {item}: {element}), '') || ']'"
    if pa.types.is_string(kind):
        return f"strlen({value}) || ':' || {value}"
    if pa.types.is_binary(kind):
        return f"lower(hex({value})) || ';'"
    if pa.types.is_floating(kind):
        return (
            f"CASE WHEN isnan({value}) THEN 'NaN;' WHEN {value} = 0 THEN '0;'"
            f" ELSE CAST(CAST({value} AS BIT) AS BIGINT) || ';' END"
        )
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return f"CAST({value} AS VARCHAR) || ';'"
    raise AssertionError(f"no form has the type {kind}")
