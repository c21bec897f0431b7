"""The known types of the parts of a tile's SQL, and the refusal of a part without sure translation.

The types of the tables' columns are not known before there is a lake. So a type is known only from the SQL:
from its casts, literals and functions.
"""

from __future__ import annotations

from sqlglot import exp

_KIND = exp.DType
DATES = frozenset({_KIND.DATE, _KIND.DATE32})
TIMES_WITH_ZONE = frozenset({_KIND.TIMESTAMPTZ, _KIND.TIMESTAMPLTZ})
TIMESTAMPS = TIMES_WITH_ZONE | {
    _KIND.TIMESTAMP,
    _KIND.TIMESTAMPNTZ,
    _KIND.TIMESTAMP_S,
    _KIND.TIMESTAMP_MS,
    _KIND.TIMESTAMP_NS,
    _KIND.DATETIME,
}
MOMENTS = DATES | TIMESTAMPS
INTEGERS = frozenset(exp.DataType.INTEGER_TYPES)
NUMBERS = frozenset(exp.DataType.NUMERIC_TYPES)
FLOATS = frozenset(exp.DataType.FLOAT_TYPES)
TEXTS = frozenset(exp.DataType.TEXT_TYPES)
LISTS = frozenset({_KIND.ARRAY, _KIND.LIST})
MAPS = frozenset({_KIND.MAP})
JSON = frozenset({_KIND.JSON})
BOOLEANS = frozenset({_KIND.BOOLEAN})
INTERVALS = frozenset({_KIND.INTERVAL})
BYTES = frozenset({_KIND.BINARY, _KIND.VARBINARY, _KIND.BLOB})
_LIST_FUNCTIONS = (
    exp.Array,
    exp.ArrayAgg,
    exp.ArrayConcat,
    exp.ArrayDistinct,
    exp.ArrayFilter,
    exp.ArraySlice,
    exp.ArraySort,
    exp.Split,
    exp.Transform,
)
"""Their type is a list, also if the type of its elements is not known."""


class NoSureTranslation(Exception):
    """A part of the SQL that Athena would understand differently, or not at all."""

    def __init__(self, part: exp.Expr, remedy: str) -> None:
        super().__init__(remedy)
        self.part = part.copy()
        self.remedy = remedy


def kind_of(part: exp.Expr) -> exp.DType | None:
    """Return the kind of the part's type; None: it is not known."""
    part = part.unnest()
    if isinstance(part, _LIST_FUNCTIONS):
        return _KIND.ARRAY
    if isinstance(part, exp.Interval):
        return _KIND.INTERVAL
    found = part.type
    if found is None or found.this in (_KIND.UNKNOWN, _KIND.UNKNOWN.value, _KIND.NULL):
        return None
    return found.this if isinstance(found.this, _KIND) else None


def is_of(part: exp.Expr, kinds: frozenset[exp.DType]) -> bool:
    """Tell whether the part is known to have a type of these kinds."""
    return kind_of(part) in kinds


def is_text_literal(part: exp.Expr) -> bool:
    """Tell whether the part is a text between quotes."""
    return isinstance(part, exp.Literal) and part.is_string


def call(name: str, *arguments: exp.Expr | str) -> exp.Expr:
    """Return a call of a function of Athena. Arguments that are strings become text literals."""
    return exp.Anonymous(
        this=name,
        expressions=[exp.Literal.string(each) if isinstance(each, str) else each for each in arguments],
    )


def not_null(part: exp.Expr) -> exp.Expr:
    """Return the condition that the part has a value."""
    return exp.Not(this=exp.Is(this=part.copy(), expression=exp.Null()))


def cast(part: exp.Expr, kind: str) -> exp.Expr:
    """Return the part with the type, which may be the one that it has."""
    kept: exp.Expr = exp.cast(part, kind, dialect="athena")
    return kept
