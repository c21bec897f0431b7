"""SQL over silver tables without Spark: DuckDB runs it on their rows."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tributary.api.lake_files import LakeFiles
from tributary.api.rows import read_table
from tributary.api.tables import LakeTable, unknown_table, with_commit
from tributary.contract.errors import TributaryError
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_WHAT = "The query cannot be answered"


class QueryError(TributaryError):
    """SQL that cannot be run."""


class NoSuchTable(QueryError):
    """SQL over a table, `name`, that was not passed in."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(_WHAT, found=message)
        self.name = name


@dataclass(frozen=True)
class Limits:
    """What a query may use.

    seconds  of time, without the reading of the tables
    memory   as DuckDB writes it, such as "1GB": for the work on the query, and as much for its answer
    """

    seconds: float
    memory: str


def query_tables(
    files: LakeFiles,
    folders: Sequence[LakeTable],
    query: str,
    as_of: str | None = None,
    limits: Limits | None = None,
) -> pa.Table:
    """Return DuckDB's result of the query over the tables, now or as they were at the instant `as_of`.

    folders  all of the lake's, also those of tables without a commit, which the query cannot name

    Only tables whose names occur in the query are looked at. The query can name a table as `table`,
    `schema.table` or `source.schema.table`. DuckDB ignores case in names, so a query can use only one of
    several tables whose names differ in case only. Raises `QueryError`, UnknownTable, OutOfHistory,
    ReadInSpark and UnreadableTable.
    """
    return query_read(files, folders, read_named(files, folders, query, as_of), query, limits)


def read_named(
    files: LakeFiles, folders: Sequence[LakeTable], query: str, as_of: str | None
) -> Mapping[TableName, pa.Table]:
    """Return the rows of the tables that the query names."""
    mentioned = with_commit(files.filesystem, [one for one in folders if is_named_in(query, one.name)])
    named = named_in(query, [table.name for table in mentioned])
    return {table.name: read_table(files, table, as_of) for table in mentioned if table.name in named}


def query_read(
    files: LakeFiles,
    folders: Sequence[LakeTable],
    read: Mapping[TableName, pa.Table],
    query: str,
    limits: Limits | None,
) -> pa.Table:
    """Return DuckDB's result of the query over tables that were read. Raises QueryError and UnknownTable."""
    try:
        return query_arrow(read, query, limits)
    except NoSuchTable as error:
        tables = with_commit(files.filesystem, folders)
        raise unknown_table(error.name, [table.name for table in tables]) from error


def query_arrow(tables: Mapping[TableName, pa.Table], query: str, limits: Limits | None = None) -> pa.Table:
    """Return DuckDB's result of the query over the tables. Raises `QueryError`.

    With limits, the query can neither read files nor reach the network.
    """
    import duckdb

    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        _define_views(engine, tables)
        return run_limited(engine, query, limits)


def run_limited(engine: duckdb.DuckDBPyConnection, query: str, limits: Limits | None) -> pa.Table:
    """Return the engine's result of a query. With limits, no other query can follow. Raises `QueryError`."""
    import duckdb
    import pyarrow as pa

    if limits is not None:
        engine.execute(f"SET memory_limit = '{limits.memory}'")
        engine.execute("SET enable_external_access = false")
        engine.execute("SET lock_configuration = true")
    most = None if limits is None else _memory_limit(engine)
    try:
        with _ended_after(engine, limits) as is_late:
            found = engine.sql(_one_that_reads(engine, query))
            if found is not None:
                return found.to_arrow_table() if most is None else _read_at_most(found, most)
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # The last two come from Arrow's stream.
        if limits is not None and is_late.is_set():
            raise took_too_long(limits) from error
        if limits is not None and isinstance(error, duckdb.OutOfMemoryException):
            raise needs_too_much_memory(limits, str(error)) from error
        if limits is not None and isinstance(error, duckdb.PermissionException):
            raise _outside_the_lake(error) from error
        raise _query_error(error) from error
    raise QueryError("The statement returns no rows", expected=_EXPECTED)


_EXPECTED = "a statement that reads, such as SELECT or DESCRIBE"
_READING = frozenset({"SELECT", "EXPLAIN", "PRAGMA", "CALL", "COPY", "MULTI"})
"""The kinds of statements that change nothing in the lake. MULTI is a PIVOT. Only a query without limits can
write a file with COPY."""


def _one_that_reads(engine: duckdb.DuckDBPyConnection, query: str) -> str:
    """Return the query if it is one statement that changes nothing. Raises QueryError and DuckDB's errors."""
    statements = engine.extract_statements(query)
    if len(statements) != 1:
        found = f"{len(statements):,} statements" if statements else "none"
        raise QueryError("A query is one statement", found=found, expected=_EXPECTED)
    if (kind := statements[0].type.name) not in _READING:
        raise QueryError("A query cannot change anything", found=kind.replace("_", " "), expected=_EXPECTED)
    return query


def _outside_the_lake(error: Exception) -> QueryError:
    place = re.search(r'"(.*)"', str(error))
    return QueryError(
        "The query can neither use files nor reach the network",
        found=place[1] if place else str(error),
        expected="the names of the lake's tables",
    )


def took_too_long(limits: Limits) -> QueryError:
    return QueryError(f"The query takes longer than {limits.seconds:g} seconds")


def needs_too_much_memory(limits: Limits, found: str) -> QueryError:
    return QueryError(
        "The query needs too much memory",
        expected=f"at most {limits.memory} for its work, and as much for its answer",
        found=found,
    )


def limit_bytes(limits: Limits) -> float:
    """Return the memory of these limits."""
    import duckdb

    with duckdb.connect() as engine:
        engine.execute(f"SET memory_limit = '{limits.memory}'")
        return _memory_limit(engine)


_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_ROWS_AT_ONCE = 100_000


def _memory_limit(engine: duckdb.DuckDBPyConnection) -> float:
    """Return the engine's limit in bytes. The engine says it as `953.6 MiB`."""
    ((limit,),) = engine.execute("SELECT current_setting('memory_limit')").fetchall()
    number, unit = limit.split()
    return float(number) * _UNITS[unit]


def _read_at_most(found: duckdb.DuckDBPyRelation, most: float) -> pa.Table:
    """Return an answer of at most so many bytes. DuckDB's own limit does not count an answer."""
    import pyarrow as pa

    with found.to_arrow_reader(_ROWS_AT_ONCE) as reader:
        batches, size = [], 0
        for batch in reader:
            size += batch.nbytes
            if size > most:
                raise QueryError(
                    "The answer is too large",
                    expected=f"at most {most / 1e6:,.0f} MB",
                    remedy="Select fewer rows or columns, for example with LIMIT.",
                )
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


@contextmanager
def _ended_after(engine: duckdb.DuckDBPyConnection, limits: Limits | None) -> Iterator[threading.Event]:
    """End the engine's query when its time is over, and set the event that this yields."""
    is_late = threading.Event()
    if limits is None:
        yield is_late
        return

    def end() -> None:
        is_late.set()
        engine.interrupt()

    timer = threading.Timer(limits.seconds, end)
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


def named_in(query: str, tables: Iterable[TableName]) -> frozenset[TableName]:
    """Return the tables whose names occur in the query as words.

    If tables differ only in the case of their names, take the one that the query spells exactly. A word that
    means something else only costs an unneeded read. DuckDB's own get_table_names binds the query, so it
    fails on a join with USING over tables that are not read yet.
    """
    alike: dict[TableName, list[TableName]] = {}
    for table in tables:
        if is_named_in(query, table):
            alike.setdefault(_in_one_case(table), []).append(table)
    found: set[TableName] = set()
    for named in alike.values():
        exactly = [table for table in named if is_named_in(query, table, re.NOFLAG)]
        told_apart = named if len(named) == 1 else exactly
        found.update(told_apart if len(told_apart) == 1 else [])
    return frozenset(found)


def is_named_in(query: str, table: TableName, flags: re.RegexFlag = re.IGNORECASE) -> bool:
    """Tell whether the last part of the table's name occurs in the query as a word."""
    name = re.escape(table.table.replace('"', '""'))
    return re.search(rf"(?<!\w){name}(?!\w)", query, flags) is not None


def _in_one_case(name: TableName) -> TableName:
    return TableName(name.source.lower(), name.schema.lower(), name.table.lower())


def _define_views(engine: duckdb.DuckDBPyConnection, tables: Mapping[TableName, pa.Table]) -> None:
    """Define views by all three names. Omit a short name that two tables share, because it is ambiguous."""
    others = [_in_one_case(name) for name in tables]
    for number, (name, table) in enumerate(sorted(tables.items())):
        held, plain = f"tributary_{number}", _in_one_case(name)
        engine.register(held, table)
        source, schema, short = (_quoted(part) for part in (name.source, name.schema, name.table))
        engine.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {source}")
        engine.execute(f"CREATE SCHEMA IF NOT EXISTS {source}.{schema}")
        engine.execute(f"CREATE VIEW {source}.{schema}.{short} AS FROM {held}")
        if sum(other.table == plain.table for other in others) == 1:
            engine.execute(f"CREATE VIEW {short} AS FROM {held}")
        if plain.schema == plain.source:
            # Otherwise the word would mean both to DuckDB, unless the catalog itself has the table.
            engine.execute(f"CREATE VIEW {source}.main.{short} AS FROM {held}")
        elif sum((other.schema, other.table) == (plain.schema, plain.table) for other in others) == 1:
            engine.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            engine.execute(f"CREATE VIEW {schema}.{short} AS FROM {held}")


def _query_error(error: Exception) -> QueryError:
    message, _, _ = str(error).partition("\n\n")  # Drop DuckDB's drawing of the error's position.
    missing = re.search(r"Table with name (\S+) does not exist", message)
    return NoSuchTable(message, missing[1]) if missing else QueryError(_WHAT, found=message)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
