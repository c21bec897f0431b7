"""Print values, tables and moments for a person or a program."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tributary.api.values import rows_of

if TYPE_CHECKING:
    import pyarrow as pa

output = Console()
"""Standard output, for results."""

messages = Console(stderr=True)
"""Standard error, for progress, remarks and errors."""


def tell(text: str) -> None:
    """Print a remark as it is. Otherwise, brackets as in [source.web] would be style, and vanish."""
    messages.print(text, markup=False, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    typer.echo(json.dumps(as_json(value), ensure_ascii=False, indent=2))


def as_json(value: Any) -> Any:
    """Return the value in JSON's types: decimals as text, to keep all digits, and bytes in base64."""
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
    """Print the rows under their columns, numbers to the right. Only a terminal truncates long cells."""
    cells = [[value_text(value) for value in row] for row in rows]
    to_right = [place < len(numeric) and numeric[place] for place in range(len(columns))]
    if (lines := _lines(columns, cells, to_right)) is not None:
        header, *others = lines
        output.print(header, style="bold", markup=False, highlight=False, soft_wrap=True)
        output.file.writelines(f"{line}\n" for line in others)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, is_to_right in zip(columns, to_right, strict=True):
        table.add_column(Text(column), justify="right" if is_to_right else "left", no_wrap=output.is_terminal)
    for row in cells:
        table.add_row(*map(Text, row))
    if output.is_terminal:
        output.print(table)
    else:
        # A pipe has no width that limits a row.
        Console(width=1_000_000, no_color=True).print(table, soft_wrap=True)


def _lines(
    columns: Sequence[str], cells: Sequence[Sequence[str]], to_right: Sequence[bool]
) -> list[str] | None:
    """Return the lines of a table as Rich lays them out, or None if a cell has to be wrapped or truncated.

    Rich takes milliseconds for a row, so it would take seconds for a lake with a thousand tables.
    """
    rows = [list(columns), *cells]
    if any(not cell.isprintable() for row in rows for cell in row):
        return None
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    if output.is_terminal and sum(widths) + 2 * (len(widths) - 1) > output.width:
        return None
    return ["  ".join(map(_padded, row, widths, to_right)).rstrip() for row in rows]


def _padded(cell: str, width: int, is_to_right: bool) -> str:  # noqa: FBT001 - for map
    # As Rich, which drops the blanks at the end of a cell before it moves it to the right.
    shown = cell.rstrip() if is_to_right else cell
    blanks = " " * (width - cell_len(shown))
    return blanks + shown if is_to_right else shown + blanks


def print_answer(found: pa.Table) -> None:
    """Print the rows of an Arrow table, and their number."""
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    numeric = [any(is_kind(field.type) for is_kind in kinds) for field in found.schema]
    print_table(found.column_names, rows_of(found), numeric)
    output.print(f"({found.num_rows:,} {'row' if found.num_rows == 1 else 'rows'})", style="dim")


def value_text(value: Any) -> str:
    """Return a cell's value as text. Null looks different from an empty text."""
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
    """Return the moment as `2026-01-02 03:04:05.678`, in UTC, with as many digits as it has."""
    utc = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.replace(tzinfo=None).isoformat(" ").removesuffix(".000000")


def bytes_text(value: bytes) -> str:
    """Return the bytes as UTF-8 text if they are that, else `0x` and their hexadecimal digits."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def duration_text(milliseconds: int | None) -> str:
    """Return the seconds, or the days of what is older than two days, such as events in old files."""
    if milliseconds is None:
        return "-"
    days = milliseconds // _MILLISECONDS_PER_DAY
    return f"{days:,} days" if days >= 2 else f"{milliseconds / 1000:.1f} s"


_MILLISECONDS_PER_DAY = 86_400_000


def positions_text(positions: Mapping[int, int]) -> str:
    """Return the next offset, or for several partitions each of them: `0:120 1:98`."""
    if len(positions) == 1:
        return f"{next(iter(positions.values())):,}"
    return " ".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items())) or "-"
