"""How values, tables and moments look, to a person and to a program."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa

output = Console()
"""What was asked for."""

messages = Console(stderr=True)
"""What is said beside it: progress, remarks, errors."""


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(as_json(value), ensure_ascii=False, indent=2))


def as_json(value: Any) -> Any:
    """The value in JSON's types: decimals as text, so that no digit is lost, and bytes in base64."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(key): as_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [as_json(item) for item in value]
        case Decimal() | _:
            return str(value)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], numeric: Sequence[bool] = ()) -> None:
    """The rows under their columns, numbers to the right; only on a terminal are long cells cut off."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        is_numeric = place < len(numeric) and numeric[place]
        table.add_column(Text(column), justify="right" if is_numeric else "left", no_wrap=output.is_terminal)
    for row in rows:
        table.add_row(*(Text(value_text(value)) for value in row))
    if output.is_terminal:
        output.print(table)
    else:
        # A pipe has no width that a row would have to fit.
        Console(width=1_000_000, no_color=True).print(table, soft_wrap=True)


def print_answer(found: pa.Table) -> None:
    """The rows of an Arrow table, and how many they are."""
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    numeric = [any(is_kind(field.type) for is_kind in kinds) for field in found.schema]
    print_table(found.column_names, rows_of(found), numeric)
    output.print(f"({found.num_rows:,} {'row' if found.num_rows == 1 else 'rows'})", style="dim")


def rows_of(found: pa.Table) -> Iterable[Sequence[Any]]:
    """The rows as Python's values; as text the columns with a date or a moment that Python has not."""
    return zip(*map(_values, found.columns), strict=True)


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except OverflowError:  # Before the year 1, after 9999, or infinite.
        return _texts(column)
    return values


def _texts(column: pa.ChunkedArray) -> list[Any]:
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.register("found", pa.table({"value": column}))
        return [text for (text,) in engine.sql("SELECT CAST(value AS VARCHAR) FROM found").fetchall()]


def value_text(value: Any) -> str:
    """A value of a cell: null is told from the empty text."""
    match value:
        case None:
            return "null"
        case str():
            return value
        case datetime():
            return moment_text(value)
        case bytes():
            return bytes_text(value)
        case list() | dict() | tuple():
            return json.dumps(as_json(value), ensure_ascii=False)
        case _:
            return str(value)


def moment_text(moment: datetime) -> str:
    """`2026-01-02 03:04:05.678`, in UTC, with as many digits as there are."""
    utc = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.replace(tzinfo=None).isoformat(" ").removesuffix(".000000")


def bytes_text(value: bytes) -> str:
    """The text that the bytes are in UTF-8, else their hexadecimal digits after `0x`."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def duration_text(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f} s"


def positions_text(positions: Mapping[int, int]) -> str:
    """The next offset, or all of them by partition: `0:120 1:98`."""
    if len(positions) == 1:
        return f"{next(iter(positions.values())):,}"
    return " ".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items())) or "-"
