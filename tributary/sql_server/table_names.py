"""How MySQL names the lake's tables: each schema of each source is a database, such as `shop.public`.

A client can also name a table as everywhere else: `orders`, `public.orders` or `shop.public.orders`. Tiles of
boards are tables of the database `boards`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from tributary.contract.boards.board import Tile
from tributary.contract.boards.views import without_end
from tributary.contract.errors import TributaryError
from tributary.contract.table_name import TableName
from tributary.operations.boards.tile_names import DATABASE as BOARDS
from tributary.sql_server.board_tables import NO_BOARDS, BoardTables
from tributary.sql_server.functions import NotTranslated, with_answers_of_mysql


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


def _kind_of(statement: exp.Expr) -> str:
    """Return the word with which a statement begins."""
    if isinstance(statement, exp.Command):
        return statement.name
    return "EXPLAIN" if isinstance(statement, exp.Describe) else statement.sql("mysql").split()[0]


def question_of(statement: exp.Expr, database: str | None, boards: BoardTables = NO_BOARDS) -> Question:
    """Translate a statement of MySQL's dialect that a client sent while it used a database, or none.

    `FOR SYSTEM_TIME AS OF '…'` after a table's name asks for an earlier state. Raises `NotAnswered`.
    """
    if not isinstance(statement, exp.Query):
        raise NotAnswered(
            "the lake can only be read",
            found=_kind_of(statement),
            expected="SELECT, SHOW or DESCRIBE",
        )
    query = statement.copy()
    try:
        with_answers_of_mysql(query)
    except NotTranslated as error:
        raise NotAnswered(
            "this form of a function is not translated", found=error.function, expected=error.expected
        ) from error
    defined = {cte.alias for cte in query.find_all(exp.CTE)}
    tiles = _tiles_in(query, defined, database, boards)
    moments: set[str | None] = {_moment_of(version) for version in query.find_all(exp.Version)}
    if any(tile.as_of is not None for _, tile in tiles):
        # None stands for now, at which a table is read that says nothing else.
        moments |= {tile.as_of for _, tile in tiles}
        shown = {id(table) for table, _ in tiles}
        others = [
            table
            for table in query.find_all(exp.Table)
            if id(table) not in shown and (table.db or table.name not in defined)
        ]
        if others and query.find(exp.Version) is None:
            moments.add(None)
    if len(moments) > 1:
        raise NotAnswered(
            "a query reads all its tables as of one time",
            found=" and ".join(sorted(repr(moment or "now") for moment in moments)),
            expected="the same time at each table",
        )
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
    answers = []
    for number, (table, tile) in enumerate(tiles):
        place = f"tile {number} of a board"
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True)))
        table.set("this", exp.to_identifier(place, quoted=True))
        table.set("db", None)
        table.set("catalog", None)
        # On lines of its own: the last one can be a comment.
        answers.append(f'"{place}" AS (\n{without_end(tile.sql)}\n)')
    sql = query.sql(dialect="duckdb")
    if answers:
        # First of all, so that no name which the client defines stands for a table of the tile.
        begin = next((text for text in ("WITH RECURSIVE ", "WITH ") if sql.startswith(text)), "")
        rest = f", {sql.removeprefix(begin)}" if begin else f" {sql}"
        sql = (begin or "WITH ") + ", ".join(answers) + rest
    return Question(sql, next(iter(moments), None))


def _tiles_in(
    query: exp.Query, defined: Collection[str], database: str | None, boards: BoardTables
) -> list[tuple[exp.Table, Tile]]:
    """Return the places in a query where it names tiles of boards, with the tiles."""
    named = [
        table
        for table in query.find_all(exp.Table)
        if (table.db or (database if table.name not in defined else None)) == BOARDS and not table.catalog
    ]
    tiles = boards.tiles() if named else {}
    for table in named:
        if table.name not in tiles:
            raise NotAnswered(
                "no board has such a tile",
                found=f"{BOARDS}.{table.name}",
                expected=" or ".join(tiles) or "a board file beside the lake file",
            )
    return [(table, tiles[table.name]) for table in named]


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
