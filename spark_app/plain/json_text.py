"""Read JSON without changing a value: numbers stay as they are written, and so does the text of any part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SPACE = " \t\n\r"
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """The text is not JSON."""


class Number(str):
    """A number as it is written."""

    @property
    def is_whole(self) -> bool:
        return self.removeprefix("-").isdecimal()


@dataclass(frozen=True)
class Member:
    """A name and value of an object. The value's own text is `text[start:end]` of the document."""

    name: str
    value: Any
    start: int
    end: int


def read_json(text: str) -> Any:
    """Return the value, with each number as a `Number`. Raises `NotJson`."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def members(text: str, start: int = 0) -> Iterator[Member]:
    """Yield the members of the object that begins there. Raises `NotJson`."""
    place = _after_space(text, start)
    if text[place : place + 1] != "{":
        raise NotJson(f"no object at character {place}")
    place = _after_space(text, place + 1)
    if text[place : place + 1] == "}":
        return
    while True:
        name, place = _value(text, place)
        if type(name) is not str or text[(place := _after_space(text, place)) : place + 1] != ":":
            raise NotJson(f"no name at character {place}")
        begin = _after_space(text, place + 1)
        value, end = _value(text, begin)
        yield Member(name, value, begin, end)
        place = _after_space(text, end)
        if text[place : place + 1] != ",":
            break
        place = _after_space(text, place + 1)
    if text[place : place + 1] != "}":
        raise NotJson(f"no end of the object at character {place}")


def elements(text: str, start: int) -> Iterator[Member]:
    """Yield the elements of the array that begins there, which is known to be JSON. They have no name."""
    place = _after_space(text, start + 1)
    while text[place] != "]":
        value, end = _value(text, place)
        yield Member("", value, place, end)
        place = _after_space(text, end)
        if text[place] == ",":
            place = _after_space(text, place + 1)


def as_unicode(text: str) -> str:
    """Return the text with a question mark for each half of a character, which UTF-8 cannot hold."""
    return _SURROGATE.sub("?", text) if not text.isascii() else text


def _value(text: str, place: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    return value, end


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in _SPACE:
        place += 1
    return place


# Other programs write NaN and Infinity although JSON has no such numbers.
_DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)
