"""The tables of MySQL's information schema about a lake, which BI tools and drivers ask for its columns.

mysql-mimic knows the tables. DuckDB runs the queries, because tools send all of SQL: the library's own
executor does not run those of the JDBC drivers.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mysql_mimic import AllowedResult
from mysql_mimic.constants import INFO_SCHEMA
from mysql_mimic.errors import ErrorCode, MysqlError
from mysql_mimic.schema import BaseInfoSchema, InfoSchema
from sqlglot import exp

from tributary.api.sql import Limits, QueryError, run_limited
from tributary.sql_server.result_columns import result_set_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb
    import pyarrow as pa

Databases = dict[str, dict[str, dict[str, str]]]
"""MySQL's types by database, table and column."""

_SCHEMA = "information_schema"
_CATALOG = "def"
_ENGINE, _CHARACTER_SET, _COLLATION = "Hudi", "utf8mb4", "utf8mb4_general_ci"
_LONGEST_TEXT = 2**32 - 1
_PARTS = re.compile(r"(?P<base>\w+)(\((?P<first>\d+)(,(?P<second>\d+))?\))?")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19, "float": 12, "double": 22}
_SELF_MADE = ("columns", "tables")
_SYSTEM: Databases = {
    database: {
        table: {column: "int" if kind == "INT" else "longtext" for column, kind in columns.items()}
        for table, columns in tables.items()
    }
    for database, tables in INFO_SCHEMA.items()
}


@dataclass
class SchemaTables:
    """The tables of the information schema about these databases. Each is made for its first reader."""

    databases: Databases
    _made: dict[tuple[str, str], pa.Table] = field(default_factory=dict, repr=False)

    def table(self, database: str, name: str) -> pa.Table:
        """Return a table that mysql-mimic knows, with its columns."""
        if (database, name) not in self._made:
            self._made[database, name] = self._make(database, name)
        return self._made[database, name]

    def _make(self, database: str, name: str) -> pa.Table:
        import pyarrow as pa

        kinds = INFO_SCHEMA[database][name]
        if database == _SCHEMA and name in _SELF_MADE:
            rows = list(self._rows(name))
        else:
            made = InfoSchema.from_mapping(self.databases or {"": {}}).tables[database][name]
            rows = [dict(zip(kinds, row, strict=True)) for row in made.rows]
        types = {column: pa.int64() if kind == "INT" else pa.string() for column, kind in kinds.items()}
        return pa.table(
            {
                column: pa.array([_value(row.get(column), type_) for row in rows], type_)
                for column, type_ in types.items()
            }
        )

    def _rows(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of `tables` or `columns`."""
        for database, tables in {**self.databases, **_SYSTEM}.items():
            for table, columns in tables.items():
                place = {"table_catalog": _CATALOG, "table_schema": database, "table_name": table}
                if name == "tables":
                    yield {**place, **_facts_of_table(is_system=database in _SYSTEM)}
                    continue
                for position, (column, type_) in enumerate(columns.items(), start=1):
                    yield {**place, "column_name": column, "ordinal_position": position, **_facts_of(type_)}


class LakeInfoSchema(BaseInfoSchema):  # type: ignore[misc]
    """The information schema for a client that uses the database `current`, within the limits."""

    def __init__(self, tables: SchemaTables, current: str | None, limits: Limits) -> None:
        self._tables, self._limits = tables, limits
        self._current = current if current is not None and current in INFO_SCHEMA else _SCHEMA

    async def query(self, expression: exp.Expr) -> AllowedResult:
        """Run a query over the information schema. Raises MysqlError."""
        return await asyncio.to_thread(self._answer, expression)

    def _answer(self, expression: exp.Expr) -> AllowedResult:
        import duckdb

        query = expression.copy()
        with duckdb.connect() as engine:
            self._register_tables(engine, query)
            _translate(query)
            try:
                return result_set_of(run_limited(engine, query.sql("duckdb", identify=True), self._limits))
            except QueryError as error:
                raise MysqlError(str(error), ErrorCode.UNKNOWN_ERROR) from error

    def _register_tables(self, engine: duckdb.DuckDBPyConnection, query: exp.Expr) -> None:
        """Let the query's tables be tables of the engine."""
        defined = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
        for node in list(query.find_all(exp.Table)):
            database, name = (node.db or self._current).lower(), node.name.lower()
            if not node.db and name in defined:
                continue
            if name not in INFO_SCHEMA.get(database, {}):
                raise MysqlError(f"Unknown table '{name}' in {database}", ErrorCode.UNKNOWN_ERROR)
            own = f"{database} {name}"
            engine.register(own, self._tables.table(database, name))
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
            node.set("this", exp.to_identifier(own))
            node.set("db", None)
            node.set("catalog", None)


def _value(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    return int(value) if str(type_) == "int64" else str(value)


def _facts_of_table(*, is_system: bool) -> Mapping[str, Any]:
    return {
        "table_type": "SYSTEM VIEW" if is_system else "BASE TABLE",
        "engine": None if is_system else _ENGINE,
        "version": 10,
        "table_collation": _COLLATION,
        "table_comment": "",
    }


def _facts_of(type_: str) -> Mapping[str, Any]:
    """Return what the table `columns` says of a type, such as `decimal(38,2)`."""
    parts = _PARTS.match(type_)
    assert parts is not None, type_
    base = parts["base"]
    first = None if parts["first"] is None else int(parts["first"])
    second = None if parts["second"] is None else int(parts["second"])
    is_text, is_moment = base.endswith("text"), base in ("datetime", "time", "timestamp")
    is_exact = base == "decimal" or base.endswith("int")
    return {
        "is_nullable": "YES",
        "data_type": base,
        "column_type": type_,
        "character_maximum_length": _LONGEST_TEXT if is_text or base.endswith("blob") else None,
        "character_octet_length": _LONGEST_TEXT if is_text or base.endswith("blob") else None,
        "numeric_precision": first if base == "decimal" else _DIGITS.get(base),
        "numeric_scale": (second or 0) if is_exact else None,
        "datetime_precision": (first or 0) if is_moment else None,
        "character_set_name": _CHARACTER_SET if is_text else None,
        "collation_name": _COLLATION if is_text else None,
        "column_key": "",
        "extra": "",
        "privileges": "select",
        "column_comment": "",
        "generation_expression": "",
    }


def _translate(query: exp.Expr) -> None:
    """Change what DuckDB takes in another way than MySQL, and sqlglot leaves as it is."""
    for column in query.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    for text in query.find_all(exp.Upper, exp.Lower):
        text.set("this", exp.cast(text.this, "text"))
    for like in list(query.find_all(exp.Like)):
        like.replace(_as_in_mysql(like))


def _as_in_mysql(like: exp.Like) -> exp.Expr:
    """Return the comparison with the backslash as escape, which DuckDB takes only if it is told."""
    if isinstance(like.parent, exp.Escape):
        return like
    return exp.Escape(this=like.copy(), expression=exp.Literal.string("\\"))
