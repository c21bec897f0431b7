"""A client's session: its statements become DuckDB's, over the lake's latest commits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mysql_mimic import AllowedResult, Session
from mysql_mimic.errors import ErrorCode, MysqlError
from mysql_mimic.schema import show_statement_to_info_schema_query
from mysql_mimic.session import Query
from sqlglot import exp
from sqlglot.errors import ExecuteError, ParseError

from tributary.api.kept import Kept
from tributary.api.sql import Limits
from tributary.contract.boards.views import without_end
from tributary.contract.errors import TributaryError
from tributary.operations.boards.tile_names import DATABASE as BOARDS
from tributary.sql_server.board_tables import NO_BOARDS, BoardTables
from tributary.sql_server.descriptions import SHOWN, create_table, is_like, table_status
from tributary.sql_server.information_schema import Databases, LakeInfoSchema, SchemaTables
from tributary.sql_server.result_columns import result_set_of, sent_as
from tributary.sql_server.table_names import database_of, question_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from tributary.contract.table_name import TableName

_SCHEMA_SECONDS = 30.0


class ReadableLake(Protocol):
    """What the server needs of an `OpenLake`."""

    def sql(self, query: str, as_of: str | None = None, limits: Limits | None = None) -> pa.Table: ...

    def schemas(self) -> Mapping[TableName, pa.Schema]: ...


@dataclass
class ServedLake:
    """The lake that all sessions read. They share what is known about its columns, for half a minute.

    limits  what a query may use
    boards  whose tiles can be read like tables
    """

    lake: ReadableLake
    limits: Limits
    boards: BoardTables = NO_BOARDS

    def __post_init__(self) -> None:
        self.schema = Kept(lambda: SchemaTables(self._read_databases()), _SCHEMA_SECONDS)

    def answer(self, statement: exp.Expr, database: str | None) -> AllowedResult:
        """Run a statement that a client sent while it used a database. Raises TributaryError."""
        question = question_of(statement, database, self.boards)
        return result_set_of(self.lake.sql(question.sql, question.as_of, self.limits))

    def _read_databases(self) -> Databases:
        """Return the types of all columns. Raises TributaryError."""
        found: Databases = {}
        for name, schema in self.lake.schemas().items():
            found.setdefault(database_of(name), {})[name.table] = _types(schema)
        if tiles := self.boards.columns(self._types_of):
            found[BOARDS] = tiles
        return found

    def _types_of(self, sql: str, as_of: str | None) -> Mapping[str, str]:
        # On lines of their own, because the last line of the SQL can be a comment.
        statement = f"SELECT * FROM (\n{without_end(sql)}\n) LIMIT 0"
        return _types(self.lake.sql(statement, as_of, self.limits).schema)


def _types(schema: pa.Schema) -> dict[str, str]:
    return {column.name: sent_as(column.type).name for column in schema}


class LakeSession(Session):  # type: ignore[misc]
    """The session of one connection."""

    def __init__(self, served: ServedLake) -> None:
        super().__init__()
        self._served = served
        self.middlewares[:0] = [self._without_ineffective_settings, self._answer_about_tables]

    async def _without_ineffective_settings(self, query: Query) -> AllowedResult:
        """Leave out settings that are computed, such as MariaDB's driver sends for `sql_mode`.

        The library cannot compute them. No setting changes what this server answers, except the names of
        characters, which are never computed."""
        statement = query.expression
        if not isinstance(statement, exp.Set):
            return await query.next()
        settings = [one for one in statement.expressions if not _is_computed(one)]
        if not settings:
            return [], []
        statement.set("expressions", settings)
        return await query.next()

    async def _answer_about_tables(self, query: Query) -> AllowedResult:
        """Answer statements about tables that the library does not know, and that BI tools send."""
        statement = query.expression
        if isinstance(statement, exp.Show) and statement.name in SHOWN:
            rows, titles = SHOWN[statement.name]
            pattern = statement.text("like")
            return [row for row in rows if not pattern or is_like(row[0], pattern)], titles
        if not isinstance(statement, exp.Show) or statement.name not in ("CREATE TABLE", "TABLE STATUS"):
            return await query.next()
        databases = (await self._tables()).databases
        database = statement.text("db") or self.database or ""
        if statement.name == "TABLE STATUS":
            return table_status(sorted(databases.get(database, {})))
        table = statement.text("target")
        columns = databases.get(database, {}).get(table)
        if columns is None:
            raise MysqlError(f"Table '{database}.{table}' doesn't exist", ErrorCode.UNKNOWN_ERROR)
        return [(table, create_table(table, columns))], ["Table", "Create Table"]

    async def handle_query(self, sql: str, attrs: dict[str, str]) -> AllowedResult:
        """Run a statement. The error of one that is no SQL lacks the colors that sqlglot puts in."""
        try:
            return await super().handle_query(sql, attrs)
        except ParseError as error:
            raise MysqlError(_place_of(error), ErrorCode.PARSE_ERROR) from error

    async def _static_query_middleware(self, query: Query) -> AllowedResult:
        """Answer a query without tables, with sqlglot as far as it can, else as all other queries."""
        try:
            return await super()._static_query_middleware(query)
        except (ExecuteError, ValueError):
            return await query.next()

    async def _show(self, expression: exp.Show) -> AllowedResult:
        """Answer SHOW COLUMNS and DESCRIBE with whole types, such as decimal(38,2), unlike the library."""
        if expression.name.upper() != "COLUMNS":
            return await super()._show(expression)
        select = show_statement_to_info_schema_query(expression, self.database)
        for column in select.find_all(exp.Column):
            if column.name == "data_type":
                column.set("this", exp.to_identifier("column_type"))
        return await self._query_info_schema(select)

    async def query(self, expression: exp.Expr, *_: object) -> AllowedResult:
        try:
            return await asyncio.to_thread(self._served.answer, expression, self.database)
        except TributaryError as error:
            raise told(error) from error

    async def schema(self) -> LakeInfoSchema:
        return LakeInfoSchema(await self._tables(), self.database, self._served.limits)

    async def _tables(self) -> SchemaTables:
        try:
            return await self._served.schema.get()
        except TributaryError as error:
            raise told(error) from error


def _place_of(error: ParseError) -> str:
    """Return where a statement cannot be read."""
    if not error.errors:
        return "The statement cannot be read"
    first = error.errors[0]
    place = f"line {first['line']}, column {first['col']}"
    return f"The statement cannot be read: found {first['highlight']!r} at {place}"


def _is_computed(setting: exp.Expr) -> bool:
    """Tell whether a part of SET assigns the value of a function or an operator to a variable."""
    assignment = setting.this
    return isinstance(assignment, exp.EQ) and isinstance(assignment.expression, exp.Func | exp.Binary)


def told(error: TributaryError) -> MysqlError:
    """Return the error as the client shows it."""
    return MysqlError(str(error), ErrorCode.UNKNOWN_ERROR)
