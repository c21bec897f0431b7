"""Checksums of PostgreSQL's rows, computed by PostgreSQL (`connectors.engines.checksums`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
import pyarrow as pa
from psycopg import sql

from connectors.engines.checksums import (
    BUCKET_DIGITS,
    CHECKSUM,
    VERSION,
    Bucket,
    CheckedColumn,
    Checksum,
    KeyValues,
    Part,
    RangeChecksums,
)
from connectors.engines.engine import DatabaseTable, RowsUnreadable
from connectors.engines.postgres.reading import ROWS_AT_ONCE, one_snapshot

_INTEGERS = ("int2", "int4", "int8")
_TEXTS = ("text", "varchar")
_SORTED = (*_INTEGERS, *_TEXTS, "uuid")


class PostgresChecksums(RangeChecksums[psycopg.Connection]):
    """A row's version is the transaction that wrote it (`xmin`)."""

    def sorted_columns(
        self, session: psycopg.Connection, table: DatabaseTable, key: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return the columns of whole numbers, UUIDs, and of texts whose collation compares bytes."""
        # Only the columns of the primary key are never null, and only its index sorts them.
        leading = [name for name, own in zip(key, table.primary_key, strict=False) if name == own]
        types = {column.name: column.type for column in table.columns}
        by_bytes: frozenset[str] | None = None
        found: list[str] = []
        for name in leading:
            if types[name] not in _SORTED:
                break
            if types[name] in _TEXTS:
                by_bytes = _columns_by_bytes(session, table) if by_bytes is None else by_bytes
                if name not in by_bytes:
                    break
            found.append(name)
        return tuple(found)

    @contextmanager
    def limited(self, session: psycopg.Connection, seconds: float) -> Iterator[None]:
        try:
            with one_snapshot(session):
                session.execute(
                    "SELECT set_config('statement_timeout', %s, true)", [str(round(seconds * 1000))]
                )
                yield
        except psycopg.Error as error:
            if session.closed:
                raise
            raise RowsUnreadable(" ".join(str(error).split())) from error

    def read_checksums(
        self,
        session: psycopg.Connection,
        table: DatabaseTable,
        columns: Sequence[CheckedColumn],
        parts: Sequence[Part],
    ) -> tuple[Checksum, ...]:
        rows = _Rows(table, tuple(columns), is_utf8=_is_utf8(session))
        buckets = [part for part in parts if isinstance(part, Bucket)]
        if not buckets:
            return tuple(_one(session, rows.sums(self.condition(table, columns, part))) for part in parts)
        of_bucket = rows.buckets(buckets)
        condition = self.conditions(table, [f"{of_bucket} IN ({', '.join(str(b.number) for b in buckets)})"])
        found = session.execute(rows.sums(condition, of_bucket)).fetchall()
        by_number = {number: Checksum.of_sums(*sums) for *sums, number in found}
        return tuple(by_number.get(part.number, Checksum(0, 0, 0)) for part in buckets)

    def read_row_checksums(
        self,
        session: psycopg.Connection,
        table: DatabaseTable,
        columns: Sequence[CheckedColumn],
        key: tuple[str, ...],
        part: Part,
    ) -> Iterator[pa.RecordBatch]:
        rows = _Rows(table, tuple(columns), is_utf8=_is_utf8(session))
        types = {column.name: column.type for column in columns}
        schema = pa.schema(
            [*((name, types[name]) for name in key), (CHECKSUM, pa.string()), (VERSION, pa.string())]
        )
        with session.cursor(name="tributary_verify", binary=True) as cursor:
            cursor.execute(rows.each(self.condition(table, columns, part), key))
            while found := cursor.fetchmany(ROWS_AT_ONCE):
                values = zip(*found, strict=True)
                arrays = [pa.array(one, field.type) for one, field in zip(values, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def condition(self, table: DatabaseTable, columns: Sequence[CheckedColumn], part: Part) -> str:
        if isinstance(part, Bucket):
            rows = _Rows(table, tuple(columns), is_utf8=False)
            return self.conditions(table, [f"{rows.buckets([part])} = {part.number}"])
        types = {column.name: column.type for column in table.columns}
        limits = [
            f"{_tuple(part.columns)} {operator} {_values(values, [types[name] for name in part.columns])}"
            for operator, values in ((">", part.after), ("<=", part.upto))
            if values is not None
        ]
        return self.conditions(table, limits)

    @staticmethod
    def conditions(table: DatabaseTable, limits: Sequence[str]) -> str:
        own = [] if table.condition is None else [table.condition]
        return " AND ".join(f"({one})" for one in (*own, *limits)) or "true"


class _Rows:
    """The SQL that reads a table's rows as canonical texts."""

    def __init__(self, table: DatabaseTable, columns: tuple[CheckedColumn, ...], *, is_utf8: bool) -> None:
        self.table, self.columns, self.is_utf8 = table, columns, is_utf8

    def sums(self, condition: str, group: str | None = None) -> bytes:
        """Return the query for the number of rows and both sums, by group if there is one."""
        inner = self._texts(condition, {} if group is None else {"in_group": group})
        outer = "" if group is None else ", in_group"
        grouped = "" if group is None else " GROUP BY in_group"
        halves = (f"sum(('x' || {half}(h, 16))::bit(64)::bigint)" for half in ("left", "right"))
        return (
            f"SELECT count(*), {', '.join(halves)}{outer}"
            f" FROM (SELECT {self._md5()} AS h{outer} FROM ({inner}) texts) hashes{grouped}"
        ).encode()

    def each(self, condition: str, key: tuple[str, ...]) -> bytes:
        """Return the query for each row's key, checksum and version."""
        expressions = {column.name: column.expression for column in self.columns}
        more = {f"k{number}": expressions[name] for number, name in enumerate(key)}
        inner = self._texts(condition, {**more, "v": "t.xmin::text"})
        return f"SELECT {', '.join(more)}, {self._md5()}, v FROM ({inner}) texts".encode()

    def buckets(self, parts: Sequence[Bucket]) -> str:
        """Return the expression for the number of a row's bucket."""
        by_name = {column.name: column for column in self.columns}
        texts = " || ".join(
            f"coalesce({self._text(by_name[name].expression, by_name[name].type)}, '-')"
            for name in parts[0].key
        )
        digits = f"left(encode(sha256(convert_to({texts}, 'UTF8')), 'hex'), {BUCKET_DIGITS})"
        return f"(('x' || {digits})::bit({4 * BUCKET_DIGITS})::int % {parts[0].of})"

    def _texts(self, condition: str, more: dict[str, str]) -> str:
        columns = [f"{column.expression} AS c{number}" for number, column in enumerate(self.columns)]
        columns += [f"{expression} AS {name}" for name, expression in more.items()]
        # OFFSET 0 lets PostgreSQL compute each value once, although its text mentions it twice.
        return f"SELECT {', '.join(columns)} FROM {self.table.relation} WHERE {condition} OFFSET 0"

    def _md5(self) -> str:
        texts = " || ".join(
            f"coalesce({self._text(f'c{number}', column.type)}, '-')"
            for number, column in enumerate(self.columns)
        )
        return f"md5({texts})" if self.is_utf8 else f"md5(convert_to({texts}, 'UTF8'))"

    def _text(self, value: str, kind: pa.DataType) -> str:
        """Return the expression for a value's canonical text, as `canonical_text` has it for DuckDB."""
        if pa.types.is_list(kind):
            element = f"coalesce({self._text('item.value', kind.value_type)}, '-')"
            return (
                f"CASE WHEN {value} IS NOT NULL THEN '[' || coalesce("
                f"(SELECT string_agg({element}, '' ORDER BY place)"
                f" FROM unnest({value}) WITH ORDINALITY AS item(value, place)), '') || ']' END"
            )
        if pa.types.is_string(kind):
            size = f"octet_length({value})" if self.is_utf8 else f"octet_length(convert_to({value}, 'UTF8'))"
            return f"({size} || ':' || {value})"
        if pa.types.is_binary(kind):
            return f"(encode({value}, 'hex') || ';')"
        if pa.types.is_floating(kind):
            return (
                f"CASE WHEN {value} = 'NaN' THEN 'NaN;' WHEN {value} = 0 THEN '0;' WHEN {value} IS NOT NULL"
                f" THEN ('x' || encode(float8send({value}), 'hex'))::bit(64)::bigint || ';' END"
            )
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
            return f"({value}::text || ';')"
        raise AssertionError(f"no form has the type {kind}")


def _one(session: psycopg.Connection, query: bytes) -> Checksum:
    row = session.execute(query).fetchone()
    assert row is not None, "an aggregate has one row"
    return Checksum.of_sums(*row)


def _is_utf8(session: psycopg.Connection) -> bool:
    return session.info.parameter_status("server_encoding") == "UTF8"


def _tuple(columns: Sequence[str]) -> str:
    names = ", ".join(sql.Identifier("t", name).as_string() for name in columns)
    return names if len(columns) == 1 else f"({names})"


def _values(values: KeyValues, types: Sequence[str]) -> str:
    found = ", ".join(
        # In the type of the column, so that its index can be used.
        f"{sql.Literal(str(value)).as_string()}::{kind}"
        for value, kind in zip(values, types, strict=True)
    )
    return found if len(values) == 1 else f"({found})"


def _columns_by_bytes(session: psycopg.Connection, table: DatabaseTable) -> frozenset[str]:
    if not _is_utf8(session):
        return frozenset()
    rows = session.execute(_COLLATED_BY_BYTES, [table.schema, table.name]).fetchall()
    return frozenset(name for (name,) in rows)


_COLLATED_BY_BYTES = """
    SELECT a.attname
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_collation o ON o.oid = a.attcollation
    CROSS JOIN (SELECT * FROM pg_database WHERE datname = current_database()) d
    WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
        AND (o.collname IN ('C', 'POSIX') OR o.collname = 'default' AND d.datcollate IN ('C', 'POSIX')
            AND to_jsonb(d) ->> 'datlocprovider' IS DISTINCT FROM 'i')"""
"""`datlocprovider` came with PostgreSQL 15. An ICU locale takes the place of the C library's."""
