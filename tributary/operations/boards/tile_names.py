"""The names under which other programs know the tiles of boards, as if each tile were a table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tributary.contract.boards.board import Board, Tile

DATABASE = "boards"
"""The name of their database. Those of the lake's tables contain a period."""


def named_tiles(board: Board) -> Mapping[str, Tile]:
    """Return the tiles by name: `tickit_revenue_by_category` of the board tickit.

    A title that two tiles share gets the tile's number, too. Names have lower-case letters, digits and
    underscores.
    """
    slugs = [_slug(tile.title) for tile in board.tiles]
    return {
        f"{_slug(board.name)}_{slug}" + (f"_{number}" if slugs.count(slug) > 1 or not slug else ""): tile
        for number, (slug, tile) in enumerate(zip(slugs, board.tiles, strict=True), start=1)
    }


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
