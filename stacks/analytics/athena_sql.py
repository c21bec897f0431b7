"""Say the SQL of a board's tile as Athena takes it. Tiles are written in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from stacks.analytics.athena_functions import functions_that_athena_lacks
from stacks.analytics.athena_meaning import is_known, named_for_athena, with_meaning
from stacks.analytics.athena_types import NoSureTranslation
from stacks.analytics.athena_values import shows_nothing
from tributary.contract.boards.board import BoardError
from tributary.contract.derived import DERIVED_SCHEMA, DERIVED_SOURCE
from tributary.contract.lake import Lake
from tributary.contract.patterns import WILDCARDS
from tributary.contract.table_name import TableName

ColumnType = Literal["STRING", "DECIMAL", "DATETIME"]
"""The types of QuickSight that tiles need."""
_ATHENA_TYPES: Mapping[ColumnType, str] = {
    "STRING": "VARCHAR",
    "DECIMAL": "DOUBLE",
    "DATETIME": "TIMESTAMP",
}
_DATES = tuple(exp.DataType.TEMPORAL_TYPES - {exp.DataType.Type.TIME, exp.DataType.Type.TIMETZ})
_SHORT_UNITS = ("HOUR", "MINUTE", "SECOND")


@dataclass(frozen=True)
class Column:
    """A column of an answer. `granularity` is that of a DATETIME, as QuickSight calls it."""

    name: str
    type: ColumnType
    granularity: str = "DAY"


@dataclass(frozen=True)
class TileQuery:
    """A tile's SQL in one dialect.

    columns  of the answer, in its order
    order    the first column by which the SQL orders its rows, and whether descending; None: by none
    """

    tree: exp.Query
    columns: tuple[Column, ...]
    order: tuple[str, bool] | None

    def typed(self, columns: Mapping[str, ColumnType]) -> str:
        """Return Athena's SQL for these columns of the answer, as column_1, column_2, … with these types.

        Casts make sure of the types, because nobody knows the tables' types before there is a lake.
        """
        casts = ", ".join(
            f"CAST({_quoted(name)} AS {_ATHENA_TYPES[kind]}) AS {column_name(number)}"
            for number, (name, kind) in enumerate(columns.items(), start=1)
        )
        sql = self.tree.sql("athena", unsupported_level=ErrorLevel.RAISE, comments=False)
        return f"SELECT {casts} FROM ({sql}) AS tile"


def column_name(number: int) -> str:
    """Return the name that the column has for Athena, which may change the letters of other names."""
    return f"column_{number}"


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("athena")


def athena_query(lake: Lake, sql: str, where: str) -> TileQuery:
    """Parse a tile's SQL for the lake on Athena. Raise BoardError if Athena cannot answer it."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="duckdb") if tree is not None]
    except SqlglotError as error:
        raise _refusal("the SQL cannot be parsed", where, _first_line(error)) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise _refusal("a tile needs exactly one statement that reads", where, f"{len(trees)} statements")
    tree = named_for_athena(trees[0])
    _refuse_unknown_functions(tree, where)
    _refuse_unnamed_columns(tree, where)
    for select in list(tree.find_all(exp.Select)):
        _spell_out(select, where)
    try:
        tree = with_meaning(tree)
    except NoSureTranslation as error:
        raise BoardError(
            "a part of the SQL has no sure counterpart on Athena",
            where=f"{where}, key sql",
            found=error.part.sql("duckdb"),
            expected="SQL whose answer is the same in DuckDB and in Athena",
            remedy=f"{error.remedy} Or keep the board out of the folder of [aws.quicksight].boards.",
        ) from error
    columns = _columns(tree, where)
    _name_tables(lake, tree, where)
    query = TileQuery(tree, columns, _order(tree, [column.name for column in columns]))
    try:
        translated = query.typed({column.name: column.type for column in columns})
        unknown = functions_that_athena_lacks(translated)
    except SqlglotError as error:
        raise _refusal("Athena has no words for a part of the SQL", where, _first_line(error)) from error
    if unknown:
        raise _refusal("Athena lacks a function of the translated SQL", where, ", ".join(unknown))
    return query


def _first_line(error: SqlglotError) -> str:
    return str(error).partition("\n")[0]


def _refuse_unknown_functions(tree: exp.Query, where: str) -> None:
    """Refuse functions that nobody can translate. Athena would refuse them only when a person looks."""
    unknown = sorted({function.name for function in tree.find_all(exp.Anonymous) if not is_known(function)})
    if unknown:
        raise _refusal("a function of DuckDB's cannot be translated for Athena", where, ", ".join(unknown))


def _refuse_unnamed_columns(tree: exp.Query, where: str) -> None:
    names = _of_columns(tree).named_selects
    if "*" in names or "" in names or len(set(names)) < len(names):
        found = ", ".join(name or "no name" for name in names)
        raise _refusal("QuickSight needs the name of each column of the answer", where, found)


def _columns(tree: exp.Query, where: str) -> tuple[Column, ...]:
    """Return the columns of a query whose parts have their types."""
    tree = _of_columns(tree)
    columns = []
    for name, item in zip(tree.named_selects, tree.selects, strict=True):
        if shows_nothing(item):
            raise _refusal(
                "QuickSight cannot show a list, a map, a structure, JSON or an interval",
                where,
                f"column {name}: {item.unalias().sql('duckdb')}",
            )
        columns.append(_column(name, item))
    return tuple(columns)


def _of_columns(tree: exp.Query) -> exp.Query:
    """Return the query that names the columns: the inner one of `SELECT * FROM (…)`, as views have it."""
    while isinstance(tree, exp.Select) and tree.is_star and len(tree.expressions) == 1:
        source = tree.args["from_"].this if "from_" in tree.args else None
        if not isinstance(source, exp.Subquery) or tree.args.get("joins"):
            break
        tree = source.this
    return tree


def _column(name: str, item: exp.Expr) -> Column:
    value = item.unalias()
    if isinstance(value, exp.DateTrunc | exp.TimestampTrunc):
        unit = value.text("unit").upper()
        return Column(name, "DATETIME", unit if unit in _SHORT_UNITS else "DAY")
    if value.is_type(*_DATES):
        return Column(name, "DATETIME", "DAY" if value.is_type("date") else "SECOND")
    is_number = value.is_type(*exp.DataType.NUMERIC_TYPES) or isinstance(value, exp.Sum | exp.Avg | exp.Count)
    return Column(name, "DECIMAL" if is_number else "STRING")


def _order(tree: exp.Query, names: list[str]) -> tuple[str, bool] | None:
    """Return the first column of ORDER BY, if it is one of the answer's."""
    order = _of_columns(tree).args.get("order")
    if order is None:
        return None
    first = order.expressions[0]
    by, descends = first.this, bool(first.args.get("desc"))
    if isinstance(by, exp.Var) and by.name.upper() == "ALL":
        return names[0], descends
    if isinstance(by, exp.Literal) and by.is_int and 0 < int(by.name) <= len(names):
        return names[int(by.name) - 1], descends
    return (by.name, descends) if isinstance(by, exp.Column) and by.name in names else None


def _spell_out(select: exp.Select, where: str) -> None:
    """Replace `GROUP BY ALL`, `ORDER BY ALL` and groups by an alias, none of which Athena has, by numbers."""
    items = select.expressions
    group, order = select.args.get("group"), select.args.get("order")
    if group is not None and group.args.get("all"):
        if any(item.is_star for item in items):
            raise _refusal("GROUP BY ALL needs columns with names", where, "*")
        plain = [number for number, item in enumerate(items, start=1) if not _aggregates(item)]
        select.set(
            "group",
            exp.Group(expressions=[exp.Literal.number(number) for number in plain]) if plain else None,
        )
    elif group is not None:
        group.set("expressions", [_by_number(by, items) for by in group.expressions])
    if order is not None and isinstance(order.expressions[0].this, exp.Var):
        first = order.expressions[0]
        if first.this.name.upper() == "ALL":
            numbers = (exp.Literal.number(number) for number in range(1, len(items) + 1))
            order.set("expressions", [exp.Ordered(this=one, desc=first.args.get("desc")) for one in numbers])


def _aggregates(item: exp.Expression) -> bool:
    """Tell whether the item of a SELECT is computed over the rows of a group."""
    return any(
        found.find_ancestor(exp.Window, exp.Query) is item.find_ancestor(exp.Query)
        for found in item.find_all(exp.AggFunc)
    )


def _by_number(by: exp.Expression, items: list[exp.Expression]) -> exp.Expression:
    """Return a group by an alias as the alias's number, and any other group as it is."""
    if not isinstance(by, exp.Column) or by.table:
        return by
    for number, item in enumerate(items, start=1):
        is_alias = isinstance(item, exp.Alias) and item.alias == by.name
        # An alias that hides a column it is computed from: both databases take the column.
        if is_alias and all(column.name != by.name for column in item.this.find_all(exp.Column)):
            return exp.Literal.number(number)
    return by


def _name_tables(lake: Lake, tree: exp.Query, where: str) -> None:
    with_names = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier):
            raise _refusal("a tile can read only tables of the lake", where, table.sql("duckdb"))
        if not table.db and table.name in with_names:
            continue
        parts = tuple(part.name for part in table.parts)
        named = lake_table(lake, parts, where)
        catalog = exp.to_table(
            f'"{lake.names.glue_database}"."{lake.names.glue_table(named)}"', dialect="athena"
        )
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
        catalog.set("alias", alias.copy())
        table.replace(catalog)


def lake_table(lake: Lake, parts: tuple[str, ...], where: str) -> TableName:
    """Return the lake's table for one, two or three parts of its name. Raise BoardError if it is not clear.

    The tables of a pattern are known only once there is a lake. So a short name stands for a table of the
    one schema whose pattern it matches.
    """
    found = sorted(set(_candidates(lake, parts)))
    if len(found) == 1:
        return found[0]
    raise BoardError(
        "the table's name fits several tables" if found else "the lake has no such table",
        where=where,
        found=".".join(parts) if not found else " and ".join(map(str, found)),
        expected="a table that the patterns of one source include",
        remedy="Write the whole name in the SQL: source.schema.table.",
    )


def _candidates(lake: Lake, parts: tuple[str, ...]) -> Iterator[TableName]:
    derived = TableName(DERIVED_SOURCE, DERIVED_SCHEMA, parts[-1])
    if parts[-1] in dict(lake.derived) and parts[:-1] in (
        (),
        (DERIVED_SCHEMA,),
        (DERIVED_SOURCE, DERIVED_SCHEMA),
    ):
        yield derived
        return
    of_policies = [name for name, _ in lake.tables]
    for source in lake.sources:
        schemas = {
            *(
                pattern.schema
                for pattern in source.patterns.include
                if not set(pattern.schema) & set(WILDCARDS)
            ),
            *(name.schema for name in of_policies if name.source == source.name),
            *parts[-2:-1],
            *((source.routed_events.lake_schema,) if source.routed_events is not None else ()),
        }
        for schema in schemas:
            name = TableName(source.name, schema, parts[-1])
            full = (name.source, name.schema, name.table)
            is_meant = full[3 - len(parts) :] == parts or parts[:-1] == (source.name,) == (schema,)
            if is_meant and (source.matches(schema, parts[-1]) or source.routes_to(schema)):
                yield name


def _refusal(what: str, where: str, found: str) -> BoardError:
    return BoardError(
        what,
        where=f"{where}, key sql",
        found=found,
        expected="one SELECT that DuckDB and Athena both understand",
        remedy="Change the SQL, or keep the board out of the folder of [aws.quicksight].boards.",
    )
