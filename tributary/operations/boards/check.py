"""Check board files: alone, or with their answers from the lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tributary.api.time_travel import NotAMoment, OutOfHistory, instant_of
from tributary.contract.boards.board import Board, BoardError, Tile, read_board, tile_place
from tributary.contract.boards.views import View
from tributary.contract.errors import TributaryError
from tributary.operations.boards.answers import shown

if TYPE_CHECKING:
    import pyarrow as pa

Ask = Callable[[str, str | None], "pa.Table"]
"""Answers a statement, now or as of a time."""


@dataclass(frozen=True)
class Checked:
    """A board file, its board if the file can be read, and what is wrong with it."""

    path: Path
    board: Board | None
    problems: tuple[TributaryError, ...]


def check_boards(files: Sequence[Path], ask: Ask | None = None) -> Iterator[Checked]:
    """Check each file. With `ask`, also run every tile's SQL and compare the answer with the chart."""
    for path in files:
        try:
            board = read_board(path)
        except BoardError as error:
            yield Checked(path, None, (error,))
            continue
        problems = [problem for view in board.views if (problem := _problem_of_view(view, path)) is not None]
        # A tile with a broken view would only repeat what is wrong with the view.
        problems += (
            []
            if problems
            else [
                problem
                for number, tile in enumerate(board.tiles, start=1)
                if (problem := _problem_of(tile, tile_place(path, number, tile.title), ask)) is not None
            ]
        )
        yield Checked(path, board, tuple(problems))


def _problem_of_view(view: View, board: Path) -> TributaryError | None:
    try:
        check_statement(view.sql, f"{board.parent / view.file}, view {view.name}")
    except TributaryError as error:
        return error
    return None


def _problem_of(tile: Tile, where: str, ask: Ask | None) -> TributaryError | None:
    try:
        check_statement(tile.sql, where)
        if tile.as_of is not None:
            instant_of(tile.as_of)
        if ask is not None:
            shown(tile, answer_of(tile, where, ask), where)
    except NotAMoment as error:
        return _of_moment(error, where)
    except TributaryError as error:
        return error
    return None


def answer_of(tile: Tile, where: str, ask: Ask) -> pa.Table:
    """Return the answer to a tile's SQL. Raises BoardError, which names the tile, for errors of the query."""
    try:
        return ask(tile.sql, tile.as_of)
    except (NotAMoment, OutOfHistory) as error:
        raise _of_moment(error, where) from error
    except TributaryError as error:
        raise BoardError(
            error.what,
            where=where if error.where is None else f"{where}: {error.where}",
            found=error.found,
            expected=error.expected,
            remedy=list(error.remedies) or "Try the statement on the page Ask of the console.",
        ) from error


def _of_moment(error: TributaryError, where: str) -> BoardError:
    """Return the error of a tile whose `as_of` names no state that can be read."""
    place = f"{where}, key as_of"
    return BoardError(
        error.what,
        where=place if error.where is None else f"{place}: {error.where}",
        found=error.found,
        expected=error.expected,
        remedy="Change as_of in the file. Without it, the tile shows the latest commit.",
    )


def check_statement(sql: str, where: str) -> None:
    """Raise BoardError if the SQL is not exactly one statement that reads."""
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        message, _, _ = str(error).partition("\n\n")
        raise BoardError(
            "the SQL cannot be parsed",
            where=f"{where}, key sql",
            found=message,
            remedy="Try the statement on the page Ask of the console.",
        ) from error
    kinds = [str(statement.type).rpartition(".")[2].lower() for statement in statements]
    if kinds != ["select"]:
        raise BoardError(
            "a tile needs exactly one statement that reads",
            where=f"{where}, key sql",
            found=" and ".join(kinds) or "no statement",
            expected="one SELECT",
            remedy="Give each statement a tile of its own, and leave out statements that write.",
        )
