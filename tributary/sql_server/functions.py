"""Give functions the answers of MySQL's manual, where DuckDB's function of that name has another.

sqlglot translates names. Days and weeks count differently in both databases, and a text's length is in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp, parse_one

_YEAR_0 = "0000-01-01"
_ISO_WEEK, _FROM_SUNDAY, _FROM_MONDAY = ("1", "3"), "0", "5"


class NotTranslated(Exception):
    """A function with an argument that has no sure counterpart in DuckDB."""

    def __init__(self, function: exp.Expr, expected: str) -> None:
        super().__init__(expected)
        self.function = function.sql(dialect="mysql")
        self.expected = expected


def with_answers_of_mysql(query: exp.Query) -> None:
    """Change functions so that DuckDB answers as MySQL. Raise NotTranslated."""
    for part in reversed(list(query.walk())):
        change = _OF_KINDS.get(type(part))
        if isinstance(part, exp.Anonymous):
            change = _OF_NAMES.get(part.name.upper())
        new = change(part) if change is not None else part
        if new is not part:
            part.replace(new)


def _duckdb(template: str, **values: exp.Expr) -> exp.Expr:
    """Return an expression of DuckDB with values in place of its columns."""
    tree = parse_one(f"({template})", read="duckdb")
    for column in list(tree.find_all(exp.Column)):
        if column.name in values:
            column.replace(values[column.name].copy())
    return tree


def _day_of_week(part: exp.DayOfWeek) -> exp.Expr:
    """Sunday is 1 in MySQL, and 0 in DuckDB."""
    return exp.Paren(this=exp.Add(this=part.copy(), expression=exp.Literal.number(1)))


def _weekday(part: exp.Anonymous) -> exp.Expr:
    """Monday is 0 in MySQL."""
    return _duckdb("isodow(CAST(x AS DATE)) - 1", x=part.expressions[0])


def _week(part: exp.Week) -> exp.Expr:
    """Weeks begin on Sunday, unless the mode says otherwise."""
    mode, day = part.text("mode") or _FROM_SUNDAY, part.this
    if mode == _FROM_SUNDAY:
        return _duckdb("CAST(strftime(CAST(x AS DATE), '%U') AS INT)", x=day)
    if mode == _FROM_MONDAY:
        return _duckdb("CAST(strftime(CAST(x AS DATE), '%W') AS INT)", x=day)
    if mode == "3":
        return exp.Week(this=day.copy())
    raise NotTranslated(part, "mode 0, 3 (ISO 8601) or 5")


def _year_week(part: exp.Anonymous) -> exp.Expr:
    day, *modes = part.expressions
    mode = modes[0].name if modes else _FROM_SUNDAY
    if mode in _ISO_WEEK:
        return _duckdb("yearweek(CAST(x AS DATE))", x=day)
    if mode == _FROM_SUNDAY:
        begin = _duckdb("CAST(x AS DATE) - CAST(dayofweek(CAST(x AS DATE)) AS INT)", x=day)
        return _duckdb("year(b) * 100 + CAST(strftime(b, '%U') AS INT)", b=begin)
    raise NotTranslated(part, "mode 0, 1 or 3")


def _days_since_year_0(part: exp.Paren) -> exp.Expr:
    """The translator counts one day too many for TO_DAYS."""
    sum_ = part.this
    days = sum_.this if isinstance(sum_, exp.Add) else None
    if isinstance(days, exp.DateDiff) and any(
        literal.name == _YEAR_0 for literal in days.expression.find_all(exp.Literal)
    ):
        return days.copy()
    return part


def _length(part: exp.Length) -> exp.Expr:
    """MySQL's LENGTH counts bytes, and CHAR_LENGTH letters."""
    if not part.args.get("binary"):
        return part
    return _duckdb(
        "CASE typeof(x) WHEN 'BLOB' THEN octet_length(CAST(x AS BLOB)) ELSE strlen(CAST(x AS TEXT)) END",
        x=part.this,
    )


def _unix_time(part: exp.Anonymous) -> exp.Expr:
    if not part.expressions:
        return _duckdb("CAST(epoch(now()) AS BIGINT)")
    return _duckdb("epoch(CAST(x AS TIMESTAMP))", x=part.expressions[0])


def _time(part: exp.Time) -> exp.Expr:
    return _duckdb("CAST(x AS TIME)", x=part.this)


def _moved(sign: str) -> Callable[[exp.Anonymous], exp.Expr]:
    def moved(part: exp.Anonymous) -> exp.Expr:
        """ADDDATE and SUBDATE take days, or an interval."""
        if len(part.expressions) != 2:
            return part
        day, by = part.expressions
        if isinstance(by, exp.Interval):
            return _duckdb(f"x {sign} i", x=day, i=by)
        return _duckdb(f"x {sign} to_days(CAST(n AS INT))", x=day, n=by)

    return moved


_OF_KINDS: Mapping[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.DayOfWeek: _day_of_week,
    exp.Week: _week,
    exp.Paren: _days_since_year_0,
    exp.Length: _length,
    exp.Time: _time,
}
_OF_NAMES: Mapping[str, Callable[[Any], exp.Expr]] = {
    "WEEKDAY": _weekday,
    "YEARWEEK": _year_week,
    "UNIX_TIMESTAMP": _unix_time,
    "ADDDATE": _moved("+"),
    "SUBDATE": _moved("-"),
}
