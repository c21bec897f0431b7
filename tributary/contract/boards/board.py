"""What a board file may hold: a title, and tiles with SQL and a kind of chart."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from tributary.contract.boards.views import View, with_views
from tributary.contract.entries import Entry, expecting, matching, without_repetition
from tributary.contract.errors import TributaryError

FOLDER = "boards"
"""The folder of the board files, beside the lake file."""
SUFFIX = ".toml"


class BoardError(TributaryError):
    """A board file that cannot be shown, or a tile whose answer does not fit its chart."""


def _interval(value: object) -> timedelta:
    units = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}
    match = re.fullmatch(r"([1-9][0-9]{0,4})([smh])", value) if isinstance(value, str) else None
    found = None if match is None else int(match[1]) * units[match[2]]
    if found is None or not timedelta(seconds=2) <= found <= timedelta(hours=24):
        raise expecting('seconds, minutes or hours, from "2s" to "24h", such as "10s"')
    return found


def _filled(value: str) -> str:
    if not value.strip():
        raise expecting("a text that is not empty")
    return value


def _columns(value: object) -> object:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


Interval = Annotated[timedelta, PlainValidator(_interval)]
Text = Annotated[str, AfterValidator(_filled)]
Columns = Annotated[tuple[str, ...], BeforeValidator(_columns), AfterValidator(without_repetition)]
ViewName = Annotated[
    str, matching(r"[a-z][a-z0-9_]*", "a name of lower-case letters, digits and underscores")
]
QueryFile = Annotated[str, matching(r"[^\x00]+\.sql", "the path of a file that ends in .sql")]


class TileEntry(Entry):
    """What every tile has.

    as_of  the instant or UTC time that the SQL sees; None: now
    width  in twelfths of the page
    """

    title: Text
    sql: Text
    as_of: Text | None = None
    width: Annotated[int, Field(ge=3, le=12)] = 6


class BarTile(TileEntry):
    """Bars for each value of `x`: one for each column in `y`, side by side or stacked."""

    chart: Literal["bar"]
    x: Text
    y: Columns
    stacked: bool = False


class LineTile(TileEntry):
    """A line over `x` for each column in `y`."""

    chart: Literal["line"]
    x: Text
    y: Columns


class PieTile(TileEntry):
    """A slice for each row: its name from `label`, its share from `value`."""

    chart: Literal["pie"]
    label: Text
    value: Text


class ScatterTile(TileEntry):
    """A point for each row. `size` makes it a bubble whose area is the value, `label` gives it a name."""

    chart: Literal["scatter"]
    x: Text
    y: Text
    size: Text | None = None
    label: Text | None = None


class NumberTile(TileEntry):
    """One number, from the only row of the answer."""

    chart: Literal["number"]
    value: Text
    unit: str = ""
    width: Annotated[int, Field(ge=3, le=12)] = 3


class TableTile(TileEntry):
    """All columns of the answer as a grid."""

    chart: Literal["table"]


Tile = BarTile | LineTile | PieTile | ScatterTile | NumberTile | TableTile
KINDS: Mapping[str, type[TileEntry]] = {
    "bar": BarTile,
    "line": LineTile,
    "pie": PieTile,
    "scatter": ScatterTile,
    "number": NumberTile,
    "table": TableTile,
}


class _BoardFile(Entry):
    title: Text
    refresh: Interval = timedelta(seconds=10)
    view: dict[ViewName, QueryFile] = Field(default_factory=dict)
    tile: Annotated[
        tuple[Annotated[Tile, Field(discriminator="chart")], ...],
        BeforeValidator(_columns),
        Field(min_length=1),
    ]


class Board(Entry):
    """A board. `name` is its file's name without the suffix. `refresh` is how often its tiles are asked.

    views  in the order of the file. The SQL of each tile already contains the views that it names
    """

    name: str
    title: str
    refresh: timedelta
    tiles: tuple[Tile, ...]
    views: tuple[View, ...] = ()


def board_files(lake_file: Path) -> tuple[Path, ...]:
    """Return the board files beside a lake file, sorted by name."""
    return tuple(sorted(lake_file.parent.joinpath(FOLDER).glob(f"*{SUFFIX}")))


def read_board(path: Path) -> Board:
    """Read a board file. Raises BoardError, which names the file, the tile and the key."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BoardError(
            "there is no such board file",
            where=str(path),
            remedy=f"Put it into the folder {FOLDER} beside the lake file. Its name ends in {SUFFIX}.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BoardError("the board file cannot be read", where=str(path), found=str(error)) from error
    return parse_board(text, path)


def parse_board(text: str, path: Path) -> Board:
    """Parse the TOML text of a board, and read the files of its views. Raises BoardError.

    path  gives the board's name, also in errors, and the folder of the views' files
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BoardError(
            "the board file is not TOML",
            where=str(path),
            found=str(error),
            remedy="Mend the line that the message names.",
        ) from error
    try:
        file = TypeAdapter(_BoardFile).validate_python(content)
    except ValidationError as error:
        raise _error_of(error.errors(), content, path) from None
    views = tuple(_read_view(name, query, path) for name, query in file.view.items())
    tiles = tuple(tile.model_copy(update={"sql": with_views(tile.sql, views)}) for tile in file.tile)
    return Board(name=path.stem, title=file.title, refresh=file.refresh, tiles=tiles, views=views)


def _read_view(name: str, file: str, board: Path) -> View:
    try:
        return View(name, file, board.parent.joinpath(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BoardError(
            "the file of a view cannot be read",
            where=f"{board}, key view.{name}",
            found=str(error),
            expected="a file with a query, by its path from the folder of the board",
            remedy="Correct the path, or write the file.",
        ) from error


def tile_place(path: Path | str, number: int, title: object = None) -> str:
    """Return how errors call a tile: by its file, its number from 1, and its title if it has one."""
    return f"{path}, tile {number}" + (f" ({title})" if isinstance(title, str) and title else "")


_EXPECTED_TYPE = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "model_type": "a table of keys",
    "model_attributes_type": "a table of keys",
    "too_short": "at least one [[tile]]",
}


def _error_of(errors: list[ErrorDetails], content: Mapping[str, Any], path: Path) -> BoardError:
    """Word one of pydantic's errors in the file's terms, and count the others."""
    # A misspelled key also leaves a required key missing. The misspelling is the better explanation.
    error = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    loc, where, keys = error["loc"], str(path), ["title", "refresh", "view", "tile"]
    if len(loc) > 1 and loc[0] == "tile" and isinstance(loc[1], int):
        tile = content["tile"][loc[1]]
        tile = tile if isinstance(tile, dict) else {}
        where = tile_place(path, loc[1] + 1, tile.get("title"))
        kind = KINDS.get(str(tile.get("chart")))
        keys = list((kind or TileEntry).model_fields)
        loc = loc[3:] if kind is not None else ("chart",)
    key = ".".join(str(part) for part in (loc[:2] if loc[:1] == ("view",) else loc[:1]))
    what, found, expected, remedy = _words(error, key, keys)
    others = f"Further mistakes in the file: {len(errors) - 1}." if len(errors) > 1 else None
    return BoardError(
        what,
        where=f"{where}, key {key}" if key else where,
        found=found,
        expected=expected,
        remedy=" ".join(filter(None, (remedy, others))),
    )


def _words(error: ErrorDetails, key: str, keys: list[str]) -> tuple[str, str, str, str]:
    """Return what is wrong, what was found, what was expected, and what to do."""
    context: Mapping[str, Any] = error.get("ctx", {})
    change = f"Change {key} in the file." if key else "Change the file."
    match error["type"]:
        case "extra_forbidden":
            close = difflib.get_close_matches(key, keys, n=1)
            remedy = f"Did you mean {close[0]}?" if close else f"Remove {key}."
            return "unknown key", key, f"one of {', '.join(keys)}", remedy
        case "missing" | "union_tag_not_found":
            example = f"{key} = …" if key != "tile" else "at least one section [[tile]]"
            expected = f"one of {', '.join(KINDS)}" if key == "chart" else example
            return "a required key is missing", "nothing", expected, f"Add {key} to the file."
        case "union_tag_invalid":
            found = str(context["tag"])
            close = difflib.get_close_matches(found, list(KINDS), n=1)
            return (
                "unknown kind of chart",
                found,
                f"one of {', '.join(KINDS)}",
                f"Did you mean {close[0]}?" if close else change,
            )
        case "expected":
            return "wrong value", repr(error["input"]), context["expected"], change
        case "greater_than_equal":
            return "wrong value", repr(error["input"]), f"at least {context['ge']}", change
        case "less_than_equal":
            return "wrong value", repr(error["input"]), f"at most {context['le']}", change
        case kind:
            return "wrong type", repr(error["input"]), _EXPECTED_TYPE.get(kind, error["msg"]), change
