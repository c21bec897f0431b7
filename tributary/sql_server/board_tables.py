"""The tiles of boards as tables of a database of their own, which hold the answer to the tile's SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tributary.contract.boards.board import BoardError, Tile, read_board
from tributary.contract.errors import TributaryError
from tributary.operations.boards.tile_names import named_tiles

TypesOf = Callable[[str, str | None], Mapping[str, str]]
"""Returns MySQL's types of the columns of a statement's answer, now or as of a time."""


@dataclass(eq=False)
class BoardTables:
    """The tiles of board files, which are read again whenever somebody asks.

    files  finds the board files
    tell   gets what a person should know of files and tiles that are left out, once each
    """

    files: Callable[[], tuple[Path, ...]]
    tell: Callable[[str], None]
    _types: dict[tuple[str, str | None], Mapping[str, str]] = field(default_factory=dict, init=False)
    _told: set[str] = field(default_factory=set, init=False)

    def tiles(self) -> Mapping[str, Tile]:
        """Return the tiles by their tables' names."""
        found: dict[str, Tile] = {}
        for path in self.files():
            try:
                found |= named_tiles(read_board(path))
            except BoardError as error:
                self._tell_once(error)
        return found

    def columns(self, types_of: TypesOf) -> dict[str, dict[str, str]]:
        """Return MySQL's types by table and column. A tile whose SQL fails is left out.

        The types of a statement are asked for once, because that reads its tables."""
        found: dict[str, dict[str, str]] = {}
        for name, tile in self.tiles().items():
            asked = (tile.sql, tile.as_of)
            try:
                if asked not in self._types:
                    self._types[asked] = types_of(*asked)
                found[name] = dict(self._types[asked])
            except TributaryError as error:
                self._tell_once(error)
        return found

    def _tell_once(self, error: TributaryError) -> None:
        if str(error) not in self._told:
            self._told.add(str(error))
            self.tell(str(error))


NO_BOARDS = BoardTables(lambda: (), lambda _: None)
