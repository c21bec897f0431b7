"""Keep the meaning of a tile's SQL on Athena, where the translator's words would mean something else.

The translator maps names. Some of them have another meaning in Athena, often by the type of a value:
`epoch_ms` of a time, the mean of decimals, a day plus 1. A part is rewritten if its meaning is sure, and
refused otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from stacks.analytics import athena_times as times
from stacks.analytics import athena_values as values
from stacks.analytics.athena_clauses import refuse_clauses_that_athena_lacks
from stacks.analytics.athena_types import call

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_MEANINGS: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.UnixToTime: times.epoch_ms,
    exp.TimeToUnix: times.epoch,
    exp.Extract: times.extract,
    exp.DayOfWeek: times.day_of_week,
    exp.DateAdd: times.date_add,
    exp.Add: times.plus,
    exp.Sub: times.minus,
    exp.DateDiff: times.difference,
    exp.DateTrunc: times.truncated,
    exp.TimestampTrunc: times.truncated,
    exp.TimeToStr: times.formatted,
    exp.StrToTime: times.formatted,
    exp.AtTimeZone: times.at_time_zone,
    **dict.fromkeys(_COMPARISONS, times.compared),
    exp.Case: times.chosen,
    exp.Div: values.divided,
    exp.IntDiv: values.divided_whole,
    exp.Avg: values.mean,
    exp.Sum: values.total,
    exp.Count: values.number_of_rows,
    exp.ArgMax: values.of_extreme,
    exp.ArgMin: values.of_extreme,
    exp.Trim: values.trimmed,
    exp.Greatest: values.extreme,
    exp.Least: values.extreme,
    exp.Log: values.logarithm,
    exp.IgnoreNulls: values.some_value,
    exp.First: values.end_of_rows,
    exp.Last: values.end_of_rows,
    exp.Bracket: values.element,
    exp.Length: values.size,
    exp.ArraySlice: values.list_part,
    exp.DPipe: values.joined,
    exp.Concat: values.joined,
    exp.ConcatWs: values.joined,
    exp.Cast: values.converted,
    exp.TryCast: values.converted,
    exp.Substring: values.piece,
    exp.Left: values.beginning,
    exp.Right: values.ending,
    exp.Contains: values.found,
    exp.Repeat: values.repeated,
    exp.GroupConcat: values.listed,
    exp.MD5: values.digest,
    exp.SHA2: values.digest,
    exp.RegexpLike: values.matching,
    exp.RegexpExtract: values.matched,
    exp.RegexpReplace: values.replaced,
    exp.Format: values.without_words,
    exp.Glob: values.without_words,
    exp.SimilarTo: values.without_words,
}
_NOW = ("now", "get_current_timestamp", "transaction_timestamp")
_PARTS_OF_TIMES = ("date_part", "datepart")
_ELEMENTS = ("list_extract", "list_element", "array_extract")
_POSITIONS = ("list_position", "list_indexof", "array_position", "array_indexof")


def named_for_athena(tree: exp.Query) -> exp.Query:
    """Return the query with functions that the translator leaves as they are, in words that it knows."""
    for function in list(tree.find_all(exp.Anonymous)):
        function.replace(_named(function))
    return tree


def _named(part: exp.Anonymous) -> exp.Expr:
    name, arguments = part.name.lower(), part.expressions
    match name, len(arguments):
        case _, 0 if name in _NOW:
            return exp.CurrentTimestamp()
        case _, 2 if name in _PARTS_OF_TIMES and isinstance(arguments[0], exp.Literal):
            return exp.Extract(this=exp.var(arguments[0].name), expression=arguments[1])
        case "weekday", 1:
            return exp.DayOfWeek(this=arguments[0])
    return part


def is_known(function: exp.Anonymous) -> bool:
    """Tell whether the function gets its name for Athena from `with_meaning`."""
    return function.name.lower() in (*_ELEMENTS, *_POSITIONS) and len(function.expressions) == 2


def with_meaning(tree: exp.Query) -> exp.Query:
    """Return the query so that Athena's answer is DuckDB's. Raise NoSureTranslation."""
    refuse_clauses_that_athena_lacks(tree)
    for select in tree.find_all(exp.Select):
        _name_source(select)
    # A time that becomes a number changes the types of all that is computed from it. So types come twice.
    typed = _rewritten(annotate_types(tree, dialect="duckdb"), times.counted)
    return _rewritten(
        annotate_types(typed, dialect="duckdb"), lambda part: _MEANINGS.get(type(part), _of_lists)(part)
    )


def _rewritten(tree: exp.Query, meaning: Callable[[exp.Expr], exp.Expr]) -> exp.Query:
    """Return the tree after `meaning` has replaced its parts, the inner ones first."""
    for part in reversed(list(tree.walk())):
        new = meaning(part)
        if new is not part:
            if new.type is None:
                new.type = part.type
            part.replace(new)
    return tree


def _name_source(select: exp.Select) -> None:
    """Name the source of columns that come from an inner query. Without the name, they have no known type."""
    source = select.args["from_"].this if select.args.get("from_") is not None else None
    if source is None or select.args.get("joins") or select.args.get("laterals"):
        return
    inner = source.this if isinstance(source, exp.Subquery) else _named_query(select, source)
    if not isinstance(inner, exp.Query) or inner.is_star or not source.alias_or_name:
        return
    clauses = [*select.expressions, *(select.args[key] for key in ("where", "group") if select.args.get(key))]
    for clause in clauses:
        for column in list(clause.find_all(exp.Column)):
            is_own = column.find_ancestor(exp.Query) is select
            if is_own and not column.table and column.name in inner.named_selects:
                column.set("table", exp.to_identifier(source.alias_or_name))


def _named_query(select: exp.Select, source: exp.Expr) -> exp.Expr | None:
    """Return the query of WITH that the source names."""
    above: exp.Expr | None = select
    while above is not None and isinstance(source, exp.Table) and not source.db:
        ctes = above.ctes if isinstance(above, exp.Query) else []
        for cte in ctes:
            if cte.alias == source.name:
                found: exp.Expr = cte.this
                return found
        above = above.parent
    return None


def _of_lists(part: exp.Expr) -> exp.Expr:
    if not isinstance(part, exp.Anonymous) or len(part.expressions) != 2:
        return part
    arguments = [each.copy() for each in part.expressions]
    if part.name.lower() in _ELEMENTS:
        return call("ELEMENT_AT", *arguments)
    if part.name.lower() in _POSITIONS:
        return exp.Nullif(this=call("ARRAY_POSITION", *arguments), expression=exp.Literal.number(0))
    return part
