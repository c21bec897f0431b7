"""How silver tables are read and asked in SQL without Spark: hudi-rs makes them Arrow, DuckDB answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tributary.api.lake_files import LakeFiles
from tributary.api.tables import LakeTable, unknown_table
from tributary.api.time_travel import ReadInSpark, check_readable
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import CheckStatus, ReadRunbook, RebuildTable
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

HUDI_COLUMN_PREFIX = "_hoodie_"

APP_COLUMNS = ("_key", "_op", "_seq", "_source_ts", "_topic", "_partition", "_offset", "_lsn", "_deleted")
"""As spark_app.table_columns declares them; that module imports PySpark, for which no query can wait."""


_DELETED = "_deleted"
_READINGS = 3
_HUDI_ERROR = "HudiCoreError"
"""A class that hudi-rs does not export."""
_GONE = re.compile(r"Object at location .+ not found")
"""As object_store, with which hudi-rs reads, puts it."""
_NARROWER_ARRAYS = "partial-update column"
"""The beginning of hudi-rs 0.5.0's error for an array in a log file that is older than an added column."""
_WHAT = "The query cannot be answered"


class QueryError(TributaryError):
    """SQL that cannot be answered."""


class UnreadableTable(TributaryError):
    """A table whose files cannot be read as they are."""


class _FileIsGone(UnreadableTable):
    """A file of the table was removed since it was listed."""


class NoSuchTable(QueryError):
    """SQL over a table, `name`, that was not given."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(_WHAT, found=message)
        self.name = name


def read_table(files: LakeFiles, table: LakeTable, as_of: str | None = None) -> pa.Table:
    """The rows of the table's latest commit, or of the latest at the instant `as_of`: the source's columns,
    then the app's; not Hudi's own. Raises `OutOfHistory`, `ReadInSpark` and `UnreadableTable`."""
    if as_of is not None:
        check_readable(files.filesystem, table, as_of)
    for _ in range(_READINGS - 1):
        # The rollback of a commit, or a cleaning, removes files that were there when the reader listed them.
        with suppress(_FileIsGone):
            return _read_once(files, table, as_of)
    return _read_once(files, table, as_of)


def _read_once(files: LakeFiles, table: LakeTable, as_of: str | None) -> pa.Table:
    import pyarrow as pa
    from hudi import HudiReadOptions, HudiTableBuilder

    uri, options = f"s3://{table.path}", HudiReadOptions()
    if as_of is not None:
        options = options.with_as_of_timestamp(as_of)
    try:
        hudi = HudiTableBuilder.from_base_uri(uri).with_storage_options(files.hudi_options).build()
        batches = hudi.read(options)
        # A table whose rows are all gone has no file, and so no batch that tells its schema.
        found = pa.Table.from_batches(batches) if batches else hudi.get_schema().empty_table()
    except Exception as error:
        if type(error).__name__ != _HUDI_ERROR:
            raise
        if _NARROWER_ARRAYS in str(error):
            raise ReadInSpark(
                "A column has been added since, beside arrays, and this state can only be read in Spark SQL",
                where=str(table.name),
                found=str(error),
                remedy=ReadRunbook("older state"),
            ) from error
        is_gone = _GONE.search(str(error)) is not None
        raise (_FileIsGone if is_gone else UnreadableTable)(
            "The table cannot be read",
            where=str(table.name),
            found=str(error),
            remedy=[CheckStatus(), "If everything runs, rebuild the table.", RebuildTable(str(table.name))],
        ) from error
    columns = [name for name in found.column_names if not name.startswith(HUDI_COLUMN_PREFIX)]
    return found.select(sorted(columns, key=APP_COLUMNS.__contains__))


def count_rows(files: LakeFiles, table: LakeTable, as_of: str | None = None) -> int:
    """Return how many rows the table has, or had, without those that are only kept as deleted."""
    import pyarrow.compute as pc

    found = read_table(files, table, as_of)
    if _DELETED not in found.column_names:
        return int(found.num_rows)
    return int(found.num_rows) - int(pc.sum(found[_DELETED]).as_py() or 0)


def answer(files: LakeFiles, tables: Sequence[LakeTable], query: str, as_of: str | None = None) -> pa.Table:
    """What DuckDB answers to the query over the tables, as they are or as they were at the instant `as_of`.
    Only those whose names occur in it are read.

    A table can be called by its name, by schema.table and by source.schema.table. Of tables whose names
    differ in case only, which DuckDB takes for the same, a query can have one. Raises `QueryError`,
    UnknownTable, OutOfHistory, ReadInSpark and UnreadableTable.
    """
    named = named_in(query, [table.name for table in tables])
    read = {table.name: read_table(files, table, as_of) for table in tables if table.name in named}
    try:
        return ask(read, query)
    except NoSuchTable as error:
        raise unknown_table(error.name, [table.name for table in tables]) from error


def ask(tables: Mapping[TableName, pa.Table], query: str) -> pa.Table:
    """What DuckDB answers to the query over the tables. Raises `QueryError`."""
    import duckdb

    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        _define_views(engine, tables)
        try:
            found = engine.sql(query)
            if found is not None:
                return found.to_arrow_table()
        except duckdb.Error as error:
            raise _query_error(error) from error
    raise QueryError("The statement gives no rows", expected="one that does, such as SELECT or DESCRIBE")


def named_in(query: str, tables: Iterable[TableName]) -> frozenset[TableName]:
    """The tables whose names occur in it as words; of those whose names differ in case only the one that
    occurs in its own. A word that means something else than the table costs a reading only.

    (DuckDB's own get_table_names binds the query, and so fails on a join with USING of tables not yet read.)
    """
    alike: dict[TableName, list[TableName]] = {}
    for table in tables:
        if _is_named_in(query, table, re.IGNORECASE):
            alike.setdefault(_in_one_case(table), []).append(table)
    found: set[TableName] = set()
    for named in alike.values():
        told_apart = named if len(named) == 1 else [table for table in named if _is_named_in(query, table)]
        found.update(told_apart if len(told_apart) == 1 else [])
    return frozenset(found)


def _is_named_in(query: str, table: TableName, flags: re.RegexFlag = re.NOFLAG) -> bool:
    name = re.escape(table.table.replace('"', '""'))
    return re.search(rf"(?<!\w){name}(?!\w)", query, flags) is not None


def _in_one_case(name: TableName) -> TableName:
    return TableName(name.source.lower(), name.schema.lower(), name.table.lower())


def _define_views(engine: duckdb.DuckDBPyConnection, tables: Mapping[TableName, pa.Table]) -> None:
    """Views by all three names. A short name that two tables share is left out, so that it cannot mislead."""
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
            # To DuckDB the one word would mean both, unless the catalog itself has the table.
            engine.execute(f"CREATE VIEW {source}.main.{short} AS FROM {held}")
        elif sum((other.schema, other.table) == (plain.schema, plain.table) for other in others) == 1:
            engine.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            engine.execute(f"CREATE VIEW {schema}.{short} AS FROM {held}")


def _query_error(error: Exception) -> QueryError:
    message, _, _ = str(error).partition("\n\n")  # Without DuckDB's drawing of the place.
    missing = re.search(r"Table with name (\S+) does not exist", message)
    return NoSuchTable(message, missing[1]) if missing else QueryError(_WHAT, found=message)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
