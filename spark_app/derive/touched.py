"""Which rows of a result a change of its inputs can touch, as a query that gives their keys.

The rows of a SELECT with inner and left joins follow from joined rows: each result row from those with its
key. So a result row can only be another one if a joined row with its key came or went. Such a joined row has
a changed row of some input, in the old state of all inputs or in the new one. This module says whether a
query has this form, and writes the query that gives the keys of the joined rows with a changed row.

Conditions in WHERE and HAVING are left out there. More keys than necessary do no harm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from tributary.contract.derivations import parseable

_DIALECT = "spark"
_CLAUSES = frozenset({"expressions", "from_", "joins", "where", "group", "having", "order", "kind"})
_PARTS_OF_TABLE = frozenset({"this", "db", "catalog", "alias"})


class _NotOfThisForm(Exception):
    """A query that does not show which keys a change touches. The text says why."""


@dataclass(frozen=True)
class TouchedKeys:
    """The keys of the joined rows, as a query. `places` are its tables, in the order of the query's text."""

    _select: exp.Select
    places: int

    def query(self, changed: int, views: Sequence[str]) -> str:
        """Return the query over views, one for each place. The one at `changed` has only changed rows."""
        select = self._select.copy()
        for number, table in enumerate(_tables(select)):
            alias = table.alias or table.name
            parent = table.parent
            if number == changed and isinstance(parent, exp.Join):
                # A changed row without a partner is in no joined row of a left join.
                parent.set("side", None)
            table.replace(
                exp.alias_(exp.to_table(views[number]), exp.to_identifier(alias, quoted=True), table=True)
            )
        return select.sql(dialect=_DIALECT)


@dataclass(frozen=True)
class AllKeys:
    """Any row can be touched, for this reason."""

    reason: str


def touched_keys(query: str, key: Sequence[str]) -> TouchedKeys | AllKeys:
    """Return the query of the touched keys, with the key's columns. `query` is SQL that was parsed before."""
    if parseable(query) != query:
        return AllKeys("it has windows of time")
    tree = parse_one(query, read=_DIALECT)
    try:
        return _touched(tree, key)
    except _NotOfThisForm as reason:
        return AllKeys(str(reason))


def _touched(tree: exp.Expr, key: Sequence[str]) -> TouchedKeys:
    if not isinstance(tree, exp.Select):
        raise _NotOfThisForm("it is not a single SELECT")
    if unknown := sorted(name for name, value in tree.args.items() if value and name not in _CLAUSES):
        raise _NotOfThisForm(f"it has {', '.join(unknown).rstrip('_')}")
    if any(node is not tree for node in tree.find_all(exp.Query)):
        raise _NotOfThisForm("it has a query in the query")
    if tree.find(exp.Window) is not None:
        raise _NotOfThisForm("it has a window over rows")
    if tree.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None:
        raise _NotOfThisForm("it groups in more than one way")
    optional = _check_tables(tree)
    expressions = [_of_key(tree, column) for column in key]
    for expression in expressions:
        _check_key(expression, optional, count=len(list(_tables(tree))))
    select = exp.Select(
        expressions=[exp.alias_(one, column) for one, column in zip(expressions, key, strict=True)],
        from_=tree.args["from_"].copy(),
        joins=[join.copy() for join in tree.args.get("joins") or ()],
    ).distinct()
    return TouchedKeys(select, len(list(_tables(select))))


def _tables(select: exp.Select) -> Iterator[exp.Table]:
    """Yield the tables after FROM and JOIN, in the order of the text."""
    yield select.args["from_"].this
    for join in select.args.get("joins") or ():
        yield join.this


def _check_tables(tree: exp.Select) -> frozenset[str]:
    """Return the names of the tables whose rows may be missing in a joined row."""
    if tree.args.get("from_") is None:
        raise _NotOfThisForm("it has no FROM")
    for table in _tables(tree):
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise _NotOfThisForm("it reads something other than a table")
        if any(value for name, value in table.args.items() if name not in _PARTS_OF_TABLE):
            raise _NotOfThisForm("it reads a table in a special way")
    optional = set()
    for join in tree.args.get("joins") or ():
        if join.method or join.kind not in ("", "INNER", "OUTER") or join.side not in ("", "LEFT"):
            raise _NotOfThisForm("it has a join other than an inner or a left join")
        if not (join.args.get("on") or join.args.get("using")):
            raise _NotOfThisForm("it has a join without a condition")
        if join.kind == "OUTER" and join.side != "LEFT":
            raise _NotOfThisForm("it has a join other than an inner or a left join")
        if join.side == "LEFT":
            optional.add(join.this.alias or join.this.name)
    return frozenset(optional)


def _of_key(tree: exp.Select, column: str) -> exp.Expr:
    """Return the expression of a column of the result."""
    named = [one for one in tree.expressions if one.alias_or_name == column]
    stars = [one for one in tree.expressions if one.is_star]
    if len(named) == 1:
        found: exp.Expr = named[0].unalias().copy()
        return found
    if not named and len(stars) == 1 and not tree.args.get("joins"):
        return exp.column(column)
    raise _NotOfThisForm(f"it does not name the column {column} once")


def _check_key(expression: exp.Expr, optional: frozenset[str], count: int) -> None:
    if expression.find(exp.AggFunc, exp.Explode, exp.UDTF, exp.Anonymous) is not None:
        raise _NotOfThisForm(f"the key {expression.sql(dialect=_DIALECT)} does not follow from one row")
    columns = list(expression.find_all(exp.Column))
    if count > 1 and optional and any(not column.table for column in columns):
        raise _NotOfThisForm("the key's columns do not name their tables")
    # A column's first part may be a table, and the others fields of a column.
    if any(column.parts[0].name in optional for column in columns):
        raise _NotOfThisForm("the key has a column of a table that a left join adds")
