"""Say what DuckDB's numbers, texts and lists mean in Athena's SQL. Source: Trino's documentation."""

from __future__ import annotations

import re

from sqlglot import exp

from stacks.analytics.athena_types import (
    BOOLEANS,
    BYTES,
    FLOATS,
    INTEGERS,
    INTERVALS,
    JSON,
    LISTS,
    MAPS,
    MOMENTS,
    TEXTS,
    TIMESTAMPS,
    NoSureTranslation,
    call,
    cast,
    is_of,
    is_text_literal,
    kind_of,
    not_null,
)

_KIND = exp.DType
_WIDER = {
    _KIND.UTINYINT: "smallint",
    _KIND.USMALLINT: "int",
    _KIND.UINT: "bigint",
    _KIND.UBIGINT: "decimal(20, 0)",
    _KIND.INT128: "decimal(38, 0)",
    _KIND.UINT128: "decimal(38, 0)",
    _KIND.TIMESTAMP_S: "timestamp",
    _KIND.TIMESTAMP_MS: "timestamp",
    _KIND.TIMESTAMP_NS: "timestamp",
    _KIND.TIMESTAMPNTZ: "timestamp",
    _KIND.DATETIME: "timestamp",
}
"""Types that Athena lacks, and the type that holds their values there."""
_TYPES_OF_ATHENA = frozenset(
    {
        *(_KIND.BOOLEAN, _KIND.TINYINT, _KIND.SMALLINT, _KIND.INT, _KIND.BIGINT, _KIND.FLOAT, _KIND.DOUBLE),
        *(_KIND.DECIMAL, _KIND.VARCHAR, _KIND.TEXT, _KIND.CHAR, _KIND.VARBINARY, _KIND.BINARY, _KIND.DATE),
        *(_KIND.TIME, _KIND.TIMESTAMP, _KIND.TIMESTAMPTZ, _KIND.JSON, _KIND.ARRAY, _KIND.LIST, _KIND.MAP),
        *(_KIND.STRUCT, _KIND.UUID),
    }
)
_PLAIN_GROUP = re.compile(r"\\(\d)")


def divided(part: exp.Div) -> exp.Expr:
    """DuckDB divides integers and decimals as floating-point numbers. Athena keeps their type, and rounds."""
    if is_of(part.this, INTERVALS):
        raise NoSureTranslation(part, "Divide a number: date_diff('second', from, to).")
    if not (isinstance(part.this, exp.Cast) and is_of(part.this, frozenset({_KIND.DOUBLE}))):
        part.this.replace(cast(part.this.unnest().copy(), "double"))
    return part


def divided_whole(part: exp.IntDiv) -> exp.Expr:
    if not (is_of(part.this, INTEGERS) and is_of(part.expression, INTEGERS)):
        raise NoSureTranslation(
            part,
            f"Say that both are integers: CAST({part.this.sql('duckdb')} AS BIGINT) // "
            f"CAST({part.expression.sql('duckdb')} AS BIGINT).",
        )
    sides = [exp.Paren(this=each.copy()) for each in (part.this, part.expression)]
    return exp.Paren(this=exp.Div(this=sides[0], expression=sides[1], typed=True))


def mean(part: exp.Avg) -> exp.Expr:
    """DuckDB's mean of decimals has all digits. Athena rounds it to the scale of the decimals."""
    values = part.this.expressions[0] if isinstance(part.this, exp.Distinct) else part.this
    if is_of(values, MOMENTS | INTERVALS):
        raise NoSureTranslation(part, "Average a number, such as epoch(time).")
    if not (isinstance(values, exp.Cast) and is_of(values, frozenset({_KIND.DOUBLE}))):
        values.replace(cast(values.copy(), "double"))
    return part


def total(part: exp.Sum) -> exp.Expr:
    """DuckDB sums truth values as 1 and 0."""
    if is_of(part.this, BOOLEANS):
        part.this.replace(cast(part.this.copy(), "int"))
    return part


def number_of_rows(part: exp.Count) -> exp.Expr:
    """DuckDB counts rows without a star, too."""
    return exp.Count(this=exp.Star()) if part.this is None else part


def of_extreme(part: exp.ArgMax | exp.ArgMin) -> exp.Expr:
    """DuckDB leaves out rows whose value is NULL. Athena's MAX_BY and MIN_BY can answer NULL."""
    there = not_null(part.this)
    if isinstance(part.parent, exp.Filter):
        condition = part.parent.expression
        condition.set("this", exp.and_(condition.this.copy(), there))
        return part
    return exp.Filter(this=part.copy(), expression=exp.Where(this=there))


def trimmed(part: exp.Trim) -> exp.Expr:
    """DuckDB trims spaces, Athena all white space."""
    if part.args.get("expression") is None:
        part.set("expression", exp.Literal.string(" "))
    return part


def extreme(part: exp.Greatest | exp.Least) -> exp.Expr:
    """DuckDB leaves NULL out. Athena's functions answer NULL if one value is NULL."""
    values = exp.Array(expressions=[part.this.copy(), *(each.copy() for each in part.expressions)])
    one = exp.to_identifier("each_value")
    there = exp.Lambda(this=not_null(one), expressions=[one])
    name = "ARRAY_MAX" if isinstance(part, exp.Greatest) else "ARRAY_MIN"
    return call(name, call("FILTER", values, there))


def logarithm(part: exp.Log) -> exp.Expr:
    return call("LOG10", part.this.copy()) if part.args.get("expression") is None else part


def some_value(part: exp.IgnoreNulls) -> exp.Expr:
    """Athena's ARBITRARY always leaves NULL out, and refuses the words for it."""
    if isinstance(part.this, exp.AnyValue):
        return part.this.copy()
    return part


def end_of_rows(part: exp.First | exp.Last) -> exp.Expr:
    raise NoSureTranslation(part, "Name the order: arg_min(value, order) or arg_max(value, order).")


def element(part: exp.Bracket) -> exp.Expr:
    """Athena has x[n] for lists only, and fails where there is no such element."""
    index = part.expressions[0]
    if len(part.expressions) != 1 or isinstance(index, exp.Slice):
        raise NoSureTranslation(
            part, "Use substr(text, start, length) for a text, and single elements of a list."
        )
    if is_of(part.this, LISTS | MAPS):
        # The parser counts from 0, as far as it sees a number.
        is_number = isinstance(index, exp.Literal) and not index.is_string
        number = exp.Literal.number(int(index.name) + 1) if is_number else index.copy()
        return call("ELEMENT_AT", part.this.copy(), number)
    raise NoSureTranslation(
        part, "Use list_extract(list, number) for a list, or substr(text, start, 1) for a text."
    )


def size(part: exp.Length) -> exp.Expr:
    return call("CARDINALITY", part.this.copy()) if is_of(part.this, LISTS) else part


def list_part(part: exp.ArraySlice) -> exp.Expr:
    raise NoSureTranslation(part, "Use list_extract(list, number): Athena takes a length instead of an end.")


def joined(part: exp.DPipe | exp.Concat | exp.ConcatWs) -> exp.Expr:
    sides = list(part.iter_expressions())
    if isinstance(part, exp.DPipe) and any(is_of(side, LISTS) for side in sides):
        lists = call("CONCAT", *(side.copy() for side in sides))
        lists.type = exp.DataType.build("array")
        return lists
    for side in sides:
        _refuse_other_text(part, side)
    return part


def _refuse_other_text(part: exp.Expr, value: exp.Expr) -> None:
    """Refuse values that DuckDB and Athena write in different ways."""
    if is_of(value, FLOATS):
        raise NoSureTranslation(
            part, f"Athena writes 1.5E0. Make a decimal of it: CAST({value.sql('duckdb')} AS DECIMAL(18, 2))."
        )
    if is_of(value, TIMESTAMPS):
        raise NoSureTranslation(part, f"Name the form: strftime({value.sql('duckdb')}, '%Y-%m-%d %H:%M:%S').")
    if is_of(value, LISTS | MAPS | INTERVALS):
        raise NoSureTranslation(part, "Make a text of single values: array_to_string(list, ', ').")


def converted(part: exp.Cast) -> exp.Expr:
    """Athena's CAST to JSON makes a JSON string of a text, and some types have other names or none."""
    kind = part.to.this
    if kind in JSON:
        return part if is_of(part.this, JSON) else exp.ParseJSON(this=part.this.copy())
    if kind in TEXTS:
        _refuse_other_text(part, part.this)
    if kind in _WIDER:
        return cast(part.this.copy(), _WIDER[kind])
    if kind not in _TYPES_OF_ATHENA:
        raise NoSureTranslation(part, "Cast to a type that Athena has, such as BIGINT, DOUBLE or VARCHAR.")
    return part


def piece(part: exp.Substring) -> exp.Expr:
    """Position 0 is before the first letter in DuckDB, and nowhere in Athena."""
    if part.args.get("start") is not None and part.args["start"].sql() == "0":
        raise NoSureTranslation(part, "Count letters from 1.")
    return part


def beginning(part: exp.Left) -> exp.Expr:
    _refuse_negative(part)
    return part


def ending(part: exp.Right) -> exp.Expr:
    """A text that is shorter stays whole."""
    _refuse_negative(part)
    start = exp.Add(
        this=exp.Sub(
            this=call("LENGTH", part.this.copy()), expression=exp.Paren(this=part.expression.copy())
        ),
        expression=exp.Literal.number(1),
    )
    return call("SUBSTR", part.this.copy(), call("GREATEST", start, exp.Literal.number(1)))


def _refuse_negative(part: exp.Left | exp.Right) -> None:
    if isinstance(part.expression, exp.Neg):
        raise NoSureTranslation(part, "Use substr(text, start, length).")


def found(part: exp.Contains) -> exp.Expr:
    """DuckDB's contains looks into texts and lists, Athena's into lists only."""
    if is_of(part.this, LISTS):
        return part
    if is_of(part.this, TEXTS) or is_of(part.expression, TEXTS):
        return exp.GT(
            this=call("STRPOS", part.this.copy(), part.expression.copy()), expression=exp.Literal.number(0)
        )
    raise NoSureTranslation(
        part, "Use list_contains(list, value) for a list, strpos(text, part) > 0 for a text."
    )


def repeated(part: exp.Repeat) -> exp.Expr:
    """Athena's REPEAT makes a list."""
    return call("ARRAY_JOIN", call("REPEAT", part.this.copy(), part.args["times"].copy()), "")


def listed(part: exp.GroupConcat) -> exp.Expr:
    """Athena joins only texts, and only in a named order."""
    values, order = part.this, None
    if isinstance(values, exp.Order):
        values, order = values.this, values.expressions
    inner = values.expressions[0] if isinstance(values, exp.Distinct) else values
    _refuse_other_text(part, inner)
    text = inner if is_of(inner, TEXTS) else cast(inner.copy(), "varchar")
    value = exp.Distinct(expressions=[text.copy()]) if isinstance(values, exp.Distinct) else text.copy()
    by = [each.copy() for each in order] if order else [exp.Ordered(this=text.copy(), nulls_first=False)]
    for one in by:
        # With DISTINCT, Athena orders only by the very values.
        if isinstance(values, exp.Distinct) and one.this == inner:
            one.set("this", text.copy())
    ordered = exp.Order(this=value, expressions=by)
    return exp.GroupConcat(this=ordered, separator=part.args.get("separator") or exp.Literal.string(","))


def digest(part: exp.MD5 | exp.SHA2) -> exp.Expr:
    """Athena's digests take bytes."""
    if not is_of(part.this, BYTES):
        part.this.replace(call("TO_UTF8", part.this.copy()))
    return part


def matching(part: exp.RegexpLike) -> exp.Expr:
    return _without_options(part, "flag")


def matched(part: exp.RegexpExtract) -> exp.Expr:
    """Without a match, DuckDB answers an empty text, and Athena NULL."""
    _without_options(part, "parameters")
    group = part.args.get("group")
    if group is not None and not (isinstance(group, exp.Literal) and group.is_int):
        raise NoSureTranslation(part, "Name one group by its number.")
    arguments = [part.this.copy(), part.expression.copy(), *([group.copy()] if group is not None else [])]
    text = exp.Coalesce(this=call("REGEXP_EXTRACT", *arguments), expressions=[exp.Literal.string("")])
    return exp.Case(ifs=[exp.If(this=not_null(part.this), true=text)])


def replaced(part: exp.RegexpReplace) -> exp.Expr:
    """Athena replaces all matches, as DuckDB does with the option 'g', and names a group $1."""
    options, replacement = part.args.get("modifiers"), part.args.get("replacement")
    if options is None or options.name != "g":
        raise NoSureTranslation(part, "Replace all matches, with the option 'g' alone.")
    if replacement is None or not is_text_literal(replacement):
        raise NoSureTranslation(part, "Write the replacement as a text.")
    text = _PLAIN_GROUP.sub(r"$\1", replacement.name.replace("$", "\\$"))
    return call("REGEXP_REPLACE", part.this.copy(), part.expression.copy(), text)


def _without_options(part: exp.Expr, key: str) -> exp.Expr:
    if part.args.get(key) is not None:
        raise NoSureTranslation(part, "Write options into the expression: '(?i)…'.")
    return part


def without_words(part: exp.Expr) -> exp.Expr:
    raise NoSureTranslation(part, "Use regexp_matches, LIKE, or concat.")


def shows_nothing(part: exp.Expr) -> bool:
    """Tell whether the values are known to have a type that no chart and no table of QuickSight shows."""
    part = part.unalias()
    return is_of(part, LISTS | MAPS | INTERVALS | JSON) or kind_of(part) is _KIND.STRUCT
