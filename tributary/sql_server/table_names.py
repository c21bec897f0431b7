"""How MySQL names the lake's tables: each schema of each source is a database, such as `shop.public`.

A client can also name a table as everywhere else: `orders`, `public.orders` or `shop.public.orders`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tributary.contract.errors import TributaryError
from tributary.contract.table_name import TableName


class NotAnswered(TributaryError):
    """A statement that the server does not run."""


@dataclass(frozen=True)
class Question:
    """A query in DuckDB's dialect. as_of: the time of the tables' state, as the client wrote it."""

    sql: str
    as_of: str | None


def database_of(table: TableName) -> str:
    """Return the name of the table's database."""
    return f"{table.source}.{table.schema}"


def question_of(statement: exp.Expr, database: str | None) -> Question:
    """Translate a statement of MySQL's dialect that a client sent while it used a database, or none.

    `FOR SYSTEM_TIME AS OF '…'` after a table's name asks for an earlier state. Raises `NotAnswered`.
    """
    if not isinstance(statement, exp.Query):
        raise NotAnswered(
            "the lake can only be read",
            found=statement.name if isinstance(statement, exp.Command) else statement.key.upper(),
            expected="SELECT, SHOW or DESCRIBE",
        )
    query = statement.copy()
    moments = {_moment_of(version) for version in query.find_all(exp.Version)}
    if len(moments) > 1:
        raise NotAnswered(
            "a query reads all its tables as of one time",
            found=" and ".join(sorted(map(repr, moments))),
            expected="the same time at each table",
        )
    defined = {cte.alias for cte in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        table.set("version", None)
        is_short = not table.db and isinstance(table.this, exp.Identifier) and table.name not in defined
        named = database if is_short else table.db
        if named and "." in named and not table.catalog:
            source, schema = named.split(".", 1)
            table.set("db", exp.to_identifier(schema, quoted=True))
            table.set("catalog", exp.to_identifier(source, quoted=True))
    for column in query.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return Question(query.sql(dialect="duckdb"), next(iter(moments), None))


def _moment_of(version: exp.Version) -> str:
    moment = version.expression
    while isinstance(moment, exp.Cast):
        moment = moment.this
    if version.args.get("kind") != "AS OF" or not (isinstance(moment, exp.Literal) and moment.is_string):
        raise NotAnswered(
            "this state of a table cannot be read",
            found=version.sql(dialect="mysql"),
            expected="FOR SYSTEM_TIME AS OF '2026-01-31 12:00:00'",
        )
    return str(moment.this)
