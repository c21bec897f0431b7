"""The boards beside the lake file, and what their tiles show, asked for all open pages together."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from tributary.api.kept import Kept
from tributary.contract.boards.board import Board, BoardError, Tile, board_files, read_board, tile_place
from tributary.contract.errors import TributaryError
from tributary.operations.boards.answers import Shown, shown
from tributary.operations.boards.check import Ask, answer_of, check_statement

_AT_A_TIME = 2
"""So many tiles are asked at once. Each may use the memory of a query, and a thread that other pages need."""


class BoardAnswers:
    """The boards of a lake.

    A page that shows a tile asks it. All pages together ask it at most twice in its board's interval.
    """

    def __init__(self, lake_file: Path, ask: Ask) -> None:
        self._lake_file = lake_file
        self._ask = ask
        self._kept: dict[tuple[str, int], tuple[Tile, timedelta, Kept[Shown | TributaryError]]] = {}
        self._turns: asyncio.Semaphore | None = None

    def read_all(self) -> tuple[Board | BoardError, ...]:
        """Return each board, or the error of its file, sorted by file."""
        return tuple(map(_board_or_error, board_files(self._lake_file)))

    def read(self, name: str) -> Board:
        """Return the board with a name. Raises BoardError."""
        files = {path.stem: path for path in board_files(self._lake_file)}
        if name not in files:
            raise BoardError(
                "there is no such board",
                where=str(self._lake_file.parent / "boards"),
                found=name,
                expected=f"one of {', '.join(files)}" if files else "a file that ends in .toml",
                remedy="Choose one from the list of boards.",
            )
        return read_board(files[name])

    async def shown(self, board: Board, number: int) -> Shown | TributaryError:
        """Return what the tile with a number, from 0, shows now, or why it shows nothing."""
        tile = board.tiles[number]
        known = self._kept.get((board.name, number))
        if known is None or known[:2] != (tile, board.refresh):
            # An answer that is kept for the whole interval would often be just too young to be asked again.
            kept = Kept(lambda: self._read(board.name, number, tile), board.refresh.total_seconds() / 2)
            known = tile, board.refresh, kept
            self._kept[board.name, number] = known
        self._turns = self._turns or asyncio.Semaphore(_AT_A_TIME)
        async with self._turns:
            return await known[2].get()

    def _read(self, board: str, number: int, tile: Tile) -> Shown | TributaryError:
        where = tile_place(f"{board}.toml", number + 1, tile.title)
        try:
            check_statement(tile.sql, where)
            return shown(tile, answer_of(tile, where, self._ask), where)
        except TributaryError as error:
            return error


def _board_or_error(path: Path) -> Board | BoardError:
    try:
        return read_board(path)
    except BoardError as error:
        return error
