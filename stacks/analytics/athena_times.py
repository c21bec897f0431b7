"""Say what DuckDB's dates and times mean in Athena's SQL. Source: Trino's documentation of its functions.

Athena reads the lake's times, with and without a zone, as TIMESTAMP in UTC.
"""

from __future__ import annotations

import re

from sqlglot import exp

from stacks.analytics.athena_types import (
    DATES,
    INTEGERS,
    INTERVALS,
    MOMENTS,
    NUMBERS,
    TIMES_WITH_ZONE,
    TIMESTAMPS,
    NoSureTranslation,
    call,
    cast,
    is_of,
    is_text_literal,
    kind_of,
)

_AS_TIME = "Say the type: CAST({0} AS TIMESTAMP) or CAST({0} AS DATE)."
_PARTS = {
    "year": "YEAR",
    "quarter": "QUARTER",
    "month": "MONTH",
    "week": "WEEK",
    "day": "DAY",
    "dayofyear": "DAY_OF_YEAR",
    "doy": "DAY_OF_YEAR",
    "isoyear": "YEAR_OF_WEEK",
    "isodow": "DAY_OF_WEEK",
    "hour": "HOUR",
    "minute": "MINUTE",
    "second": "SECOND",
}
"""Parts of a time, and Athena's function with the same answer."""
_SUNDAY_IS_0 = ("dow", "dayofweek", "weekday")
_UNITS_OF_A_DAY = ("hour", "minute", "second", "millisecond")
_UNITS = ("year", "quarter", "month", "week", "day", *_UNITS_OF_A_DAY)
_CODES = frozenset("YymdHMSpjbBaAIfGV%")
"""The codes of strftime that have a code with the same meaning in date_format, by themselves."""
_SHORT_CODES = frozenset("mdHI")
"""The codes that have one with `-`, which means without a leading zero."""
_DATE_SHAPED = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?")


def counted(part: exp.Expr) -> exp.Expr:
    """Return what is a number in DuckDB, although it looks like a time, as a difference of two times."""
    if isinstance(part, exp.UnixToTime) and part.text("scale") == "3" and is_of(part.this, MOMENTS):
        begin = cast(exp.Literal.string("1970-01-01"), "timestamp")
        return exp.DateDiff(this=_utc(part.this), expression=begin, unit=exp.var("MILLISECOND"))
    if isinstance(part, exp.Sub) and is_of(part.this, DATES) and is_of(part.expression, DATES):
        return exp.DateDiff(this=part.this.copy(), expression=part.expression.copy(), unit=exp.var("DAY"))
    return part


def epoch_ms(part: exp.UnixToTime) -> exp.Expr:
    """DuckDB's epoch_ms makes milliseconds of a time, and a time of milliseconds."""
    value = part.this
    if part.text("scale") != "3":
        return part
    if is_of(value, INTEGERS):
        return cast(part.copy(), "timestamp")
    raise NoSureTranslation(
        part,
        f"Say the type: epoch_ms(CAST({value.sql('duckdb')} AS TIMESTAMP)) for a time, "
        f"epoch_ms(CAST({value.sql('duckdb')} AS BIGINT)) for a number.",
    )


def epoch(part: exp.TimeToUnix) -> exp.Expr:
    return _seconds(part, part.this)


def _seconds(part: exp.Expr, value: exp.Expr) -> exp.Expr:
    if isinstance(value.unnest(), exp.Sub) or is_of(value, INTERVALS):
        raise NoSureTranslation(part, "Write the difference as date_diff('second', from, to).")
    return call("TO_UNIXTIME", value.copy() if is_of(value, TIMESTAMPS) else cast(value.copy(), "timestamp"))


def _utc(value: exp.Expr) -> exp.Expr:
    """Return the time as TIMESTAMP in UTC."""
    if is_of(value, TIMES_WITH_ZONE):
        return cast(call("AT_TIMEZONE", value.copy(), "UTC"), "timestamp")
    return cast(value.copy(), "timestamp")


def extract(part: exp.Extract) -> exp.Expr:
    """Days of a week count from Sunday as 0 in DuckDB, and from Monday as 1 in Athena."""
    name, value = part.name.lower(), part.expression
    if name == "epoch":
        return _seconds(part, value)
    if name in _SUNDAY_IS_0:
        return _from_sunday(value)
    if name not in _PARTS:
        raise NoSureTranslation(part, f"Use one of these parts: {', '.join(sorted(_PARTS))}, dow, epoch.")
    if name in _UNITS_OF_A_DAY and is_of(value, DATES):
        value = cast(value.copy(), "timestamp")
    return call(_PARTS[name], value.copy())


def day_of_week(part: exp.DayOfWeek) -> exp.Expr:
    return _from_sunday(part.this)


def _from_sunday(value: exp.Expr) -> exp.Expr:
    return call("MOD", call("DAY_OF_WEEK", value.copy()), exp.Literal.number(7))


def date_add(part: exp.DateAdd) -> exp.Expr:
    """DuckDB's date_add takes an interval, Athena's a unit and a number."""
    return plus(exp.Add(this=part.this.copy(), expression=part.expression.copy()))


def plus(part: exp.Add) -> exp.Expr:
    left, right = part.this, part.expression
    if is_of(left, INTERVALS) and not is_of(right, INTERVALS):
        left, right = right, left
    if is_of(right, INTERVALS):
        return _moved(part, left, right, 1)
    if is_of(right, DATES):
        left, right = right, left
    if is_of(left, DATES):
        return call("DATE_ADD", "day", right.copy(), left.copy())
    return part


def minus(part: exp.Sub) -> exp.Expr:
    left, right = part.this, part.expression
    if is_of(right, INTERVALS):
        return _moved(part, left, right, -1)
    if is_of(left, DATES) and is_of(right, NUMBERS):
        return call("DATE_ADD", "day", exp.Neg(this=exp.Paren(this=right.copy())), left.copy())
    if is_of(left, MOMENTS) or is_of(right, MOMENTS):
        raise NoSureTranslation(
            part, "Write the difference of times as date_diff('day', from, to), or with another unit."
        )
    return part


def _moved(part: exp.Expr, value: exp.Expr, by: exp.Expr, sign: int) -> exp.Expr:
    """Return a time moved by an interval. DuckDB makes a TIMESTAMP of a date, Athena needs one for hours."""
    interval = by.unnest()
    if is_of(value, INTERVALS) or not isinstance(interval, exp.Interval):
        return part
    number = interval.this
    unit = _unit(part, interval, "Write intervals with one number and one unit, such as INTERVAL 2 DAY.")
    if unit in _UNITS_OF_A_DAY or is_of(value, DATES):
        value = value if is_of(value, TIMESTAMPS) else cast(value.copy(), "timestamp")
    if isinstance(number, exp.Literal) and re.fullmatch(r"\d+", number.name):
        moved = number.name if sign > 0 else f"-{number.name}"
        count: exp.Expr = exp.Literal.number(moved)
    else:
        count = number.copy() if sign > 0 else exp.Neg(this=exp.Paren(this=number.copy()))
        count = cast(count, "bigint")
    return call("DATE_ADD", unit, count, value.copy())


def _unit(
    part: exp.Expr, written: exp.Expr, remedy: str = f"Use one of these units: {', '.join(_UNITS)}."
) -> str:
    """Return the unit that is written in a part. Refuse the part if Athena has no such unit."""
    unit = written.text("unit").lower().removesuffix("s")
    if unit not in _UNITS:
        raise NoSureTranslation(part, remedy)
    return unit


def difference(part: exp.DateDiff) -> exp.Expr:
    """DuckDB counts the borders between two times, and takes dates for every unit."""
    unit = _unit(part, part) if part.text("unit") else "day"
    ends = []
    for end in (part.expression, part.this):
        needs_type = is_text_literal(end) or (unit in _UNITS_OF_A_DAY and not is_of(end, TIMESTAMPS))
        ends.append(call("DATE_TRUNC", unit, cast(end.copy(), "timestamp") if needs_type else end.copy()))
    return call("DATE_DIFF", unit, *ends)


def truncated(part: exp.TimestampTrunc | exp.DateTrunc) -> exp.Expr:
    unit = _unit(part, part)
    value = part.this
    needs_type = is_text_literal(value) or (unit in _UNITS_OF_A_DAY and is_of(value, DATES))
    if needs_type:
        value.replace(cast(value.copy(), "timestamp"))
    return part


def formatted(part: exp.TimeToStr | exp.StrToTime) -> exp.Expr:
    """Let only those codes of a format pass that date_format and date_parse have with the same meaning."""
    pattern = part.args.get("format")
    if not (isinstance(pattern, exp.Expr) and is_text_literal(pattern)):
        raise NoSureTranslation(part, "Write the format as a text.")
    for dash, code in re.findall(r"%(-?)(.?)", pattern.name, re.DOTALL):
        if code not in (_SHORT_CODES if dash else _CODES):
            raise NoSureTranslation(
                part,
                f"Replace %{dash}{code}: Athena has %Y %y %m %d %H %I %M %S %f %p %j %b %B %a %A %G %V "
                "and %-m %-d %-H %-I.",
            )
    if isinstance(part, exp.TimeToStr) and "%V" in pattern.name:
        # Athena's %V begins weeks on Sunday. ISO's week is %v.
        written = exp.TimeToStr(this=part.this.copy(), format=pattern.copy()).sql("athena")
        return call("DATE_FORMAT", part.this.copy(), _format_of(written).replace("%V", "%v"))
    if isinstance(part, exp.StrToTime) and re.search("%[GVj]", pattern.name):
        raise NoSureTranslation(part, "Parse a year, a month and a day: %Y, %m and %d.")
    return part


def _format_of(written: str) -> str:
    return written.rpartition(", '")[2].removesuffix("')")


def at_time_zone(part: exp.AtTimeZone) -> exp.Expr:
    """A time without a zone gets one in DuckDB, and a time with a zone loses it."""
    value, zone = part.this, part.args["zone"]
    if is_of(value, TIMESTAMPS - TIMES_WITH_ZONE) or is_of(value, DATES):
        return call("WITH_TIMEZONE", cast(value.copy(), "timestamp"), zone.copy())
    if is_of(value, TIMES_WITH_ZONE) or (is_text_literal(zone) and zone.name.upper() == "UTC"):
        return cast(call("AT_TIMEZONE", value.copy(), zone.copy()), "timestamp")
    raise NoSureTranslation(
        part,
        "Say whether the time has a zone: CAST({0} AS TIMESTAMPTZ) or CAST({0} AS TIMESTAMP).".format(
            value.sql("duckdb")
        ),
    )


def compared(part: exp.Expr) -> exp.Expr:
    """DuckDB makes a time of a text that is compared with one. Athena refuses to compare them."""
    sides = list(part.iter_expressions())
    known = next((kind for side in sides if not is_text_literal(side) and (kind := kind_of(side))), None)
    for side in sides:
        if not is_text_literal(side):
            continue
        is_date = len(side.name) <= len("2026-01-31")
        if known in MOMENTS:
            side.replace(cast(side.copy(), "date" if known in DATES and is_date else "timestamp"))
        elif known is None and _DATE_SHAPED.fullmatch(side.name):
            word = "DATE" if is_date else "TIMESTAMP"
            raise NoSureTranslation(
                part,
                f"Write {word} '{side.name}' for a time. For a text, cast the other side to VARCHAR.",
            )
    return part


def chosen(part: exp.Case) -> exp.Expr:
    """CASE with a value compares it with the value of each WHEN."""
    value = part.this
    for branch in part.args["ifs"] if value is not None else []:
        both = compared(exp.EQ(this=value.copy(), expression=branch.this.copy()))
        branch.this.replace(both.expression.copy())
    return part
