"""What a tile shows of its answer, as plain values, and whether the answer fits the kind of chart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, assert_never

from tributary.api.values import values_of
from tributary.contract.boards.board import (
    BarTile,
    BoardError,
    LineTile,
    NumberTile,
    PieTile,
    ScatterTile,
    TableTile,
    Tile,
)

if TYPE_CHECKING:
    import pyarrow as pa

MOST_POINTS = 1000
"""So many rows of an answer a chart shows. More would be neither readable nor quick."""

Axis = Literal["category", "value", "time"]
Number = int | float | None


@dataclass(frozen=True)
class Series:
    """One column in `y`, with a value for each value of x."""

    name: str
    values: tuple[Number, ...]


@dataclass(frozen=True)
class Lines:
    """Bars or lines. `x` holds texts (category), numbers (value) or milliseconds since 1970 (time)."""

    axis: Axis
    x: tuple[Any, ...]
    series: tuple[Series, ...]
    rows: int


@dataclass(frozen=True)
class Slices:
    """A pie: pairs of name and value."""

    slices: tuple[tuple[str, Number], ...]
    rows: int


@dataclass(frozen=True)
class Points:
    """A scatter: x, y, size (1 without a size) and name of each point."""

    points: tuple[tuple[Number, Number, Number, str], ...]
    names: tuple[str, str, str | None]
    rows: int


@dataclass(frozen=True)
class Figure:
    """One number with its unit."""

    value: Any
    unit: str


@dataclass(frozen=True)
class Grid:
    """A table with all columns."""

    table: pa.Table


Shown = Lines | Slices | Points | Figure | Grid


def shown(tile: Tile, answer: pa.Table, where: str) -> Shown:
    """Return what a tile shows of its answer. Errors call the tile `where`. Raises BoardError."""
    part = answer.slice(0, MOST_POINTS)
    rows = answer.num_rows
    match tile:
        case BarTile() | LineTile():
            axis, x = _axis(_column(part, tile.x, "x", where))
            if isinstance(tile, BarTile) and axis != "category":
                # Bars stand side by side, also over numbers and dates.
                axis, x = "category", tuple(_text(value) for value in _column(part, tile.x, "x", where))
            series = tuple(Series(name, _numbers(part, name, "y", where)) for name in tile.y)
            return Lines(axis, x, series, rows)
        case PieTile():
            labels = map(_text, _column(part, tile.label, "label", where))
            values = _numbers(part, tile.value, "value", where)
            if (least := min((value for value in values if value is not None), default=0)) < 0:
                raise BoardError(
                    "a slice of a pie cannot be negative",
                    where=f"{where}, key value",
                    found=str(least),
                    expected="0 or more in each row",
                    remedy='Change the SQL, or take chart = "bar".',
                )
            return Slices(tuple(zip(labels, values, strict=True)), rows)
        case ScatterTile():
            return _points(tile, part, rows, where)
        case NumberTile():
            figures = _column(answer.slice(0, 1), tile.value, "value", where)
            if rows != 1:
                raise BoardError(
                    "a number needs exactly one row",
                    where=f"{where}, key sql",
                    found=f"{rows:,} rows",
                    expected="one row",
                    remedy='Aggregate in the SQL, or take chart = "table".',
                )
            return Figure(figures[0], tile.unit)
        case TableTile():
            return Grid(answer)
        case _:
            assert_never(tile)


def _points(tile: ScatterTile, part: pa.Table, rows: int, where: str) -> Points:
    x, y = _numbers(part, tile.x, "x", where), _numbers(part, tile.y, "y", where)
    sizes: tuple[Number, ...] = (1,) * part.num_rows
    if tile.size is not None:
        sizes = _numbers(part, tile.size, "size", where)
    names = ("",) * part.num_rows
    if tile.label is not None:
        names = tuple(map(_text, _column(part, tile.label, "label", where)))
    return Points(tuple(zip(x, y, sizes, names, strict=True)), (tile.x, tile.y, tile.size), rows)


def _column(answer: pa.Table, name: str, key: str, where: str) -> list[Any]:
    if answer.column_names.count(name) != 1:
        raise BoardError(
            "the answer has no such column"
            if name not in answer.column_names
            else "two columns share a name",
            where=f"{where}, key {key}",
            found=name,
            expected=f"one of {', '.join(answer.column_names)}",
            remedy=f"Name the column in the SQL with AS, or change {key}.",
        )
    return values_of(answer[name])


def _numbers(answer: pa.Table, name: str, key: str, where: str) -> tuple[Number, ...]:
    values = _column(answer, name, key, where)
    wrong = next((one for one in values if not isinstance(one, int | float | Decimal | None)), None)
    if wrong is not None or any(isinstance(value, bool) for value in values):
        found = f"{answer[name].type} in column {name}"
        raise BoardError(
            "the chart needs numbers",
            where=f"{where}, key {key}",
            found=found,
            expected="a column of numbers",
            remedy="Cast the column in the SQL, or name another one.",
        )
    return tuple(map(_number, values))


def _number(value: int | float | Decimal | None) -> Number:
    """Return a number that JSON can hold. ECharts leaves a gap for None."""
    if value is None or (not isinstance(value, int) and not math.isfinite(value)):
        return None
    return float(value) if isinstance(value, Decimal) else value


def _axis(values: list[Any]) -> tuple[Axis, tuple[Any, ...]]:
    kinds: Mapping[Axis, tuple[tuple[type, ...], Callable[[Any], Any]]] = {
        "value": ((int, float, Decimal), _number),
        "time": ((date, datetime), _milliseconds),
    }
    known = [value for value in values if value is not None]
    for axis, (types, of) in kinds.items():
        if known and all(isinstance(value, types) and not isinstance(value, bool) for value in known):
            return axis, tuple(None if value is None else of(value) for value in values)
    return "category", tuple(map(_text, values))


def _milliseconds(value: date | datetime) -> float:
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000


def _text(value: Any) -> str:
    return "∅" if value is None else str(value)
