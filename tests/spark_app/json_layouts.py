"""JSON laid out in any way in which a writer may: the same document, in other bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

Json = Any


def parse(text: bytes) -> Json:
    """Return the document, with all digits of its numbers."""
    return json.loads(text, parse_float=Decimal)


SPACES = (" ", "\n", "\t", "\r\n  ")


def laid_out(document: Json, chance: random.Random, spaces: Sequence[str] = SPACES) -> bytes:
    """Return the document with random white space, order of members and escapes."""
    layout = _Layout(chance, spaces, chance.choice((0.0, 0.1, 0.5)), chance.choice((0.0, 0.02, 0.3)))
    return (layout.space() + layout.written(document) + layout.space()).encode()


class _Layout:
    def __init__(
        self, chance: random.Random, spaces: Sequence[str], much_space: float, many_escapes: float
    ) -> None:
        self.chance, self.spaces = chance, spaces
        self.much_space, self.many_escapes = much_space, many_escapes

    def space(self) -> str:
        return self.chance.choice(self.spaces) if self.chance.random() < self.much_space else ""

    def written(self, found: Json) -> str:
        match found:
            case dict():
                return self._object(found)
            case list():
                items = [f"{self.space()}{self.written(item)}{self.space()}" for item in found]
                return f"[{','.join(items)}]"
            case str():
                return self._text(found)
            case Decimal():
                return str(found)
            case _:
                return json.dumps(found)

    def _object(self, found: Mapping[str, Json]) -> str:
        members = list(found.items())
        if self.chance.random() < 0.5:
            self.chance.shuffle(members)
        written = [
            f"{self.space()}{self._text(name)}{self.space()}:{self.space()}{self.written(value)}{self.space()}"
            for name, value in members
        ]
        return "{" + ",".join(written) + "}"

    def _text(self, found: str) -> str:
        return '"' + "".join(map(self._character, found)) + '"'

    def _character(self, character: str) -> str:
        if self.chance.random() < self.many_escapes:
            units = character.encode("utf-16-be")
            return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
        return json.dumps(character, ensure_ascii=False)[1:-1]
