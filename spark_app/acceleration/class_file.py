"""Read from a compiled Java class what it declares, and which members of other classes it links to.

The form of a class file is chapter 4 of the Java Virtual Machine Specification."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

_UTF8, _LONG, _DOUBLE, _CLASS = 1, 5, 6, 7
_MEMBERS = (9, 10, 11)
"""The tags of a reference to a field, a method, and a method of an interface."""
_LENGTHS = {
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    **dict.fromkeys((_LONG, _DOUBLE), 8),
    **dict.fromkeys((_CLASS, 8, 16, 19, 20), 2),
    15: 3,
}
"""The length of a constant after its tag, in bytes."""
_MAGIC = 0xCAFEBABE


@dataclass(frozen=True, order=True)
class Link:
    """A member that a class links to. `owner` has slashes, as in `java/lang/String`."""

    owner: str
    name: str
    descriptor: str

    def __str__(self) -> str:
        return f"{self.owner.replace('/', '.')}.{self.name}{self.descriptor}"


@dataclass(frozen=True)
class ClassFile:
    """A class: its name, the classes that it inherits from, the members it declares, and what it links to.

    Members are (name, descriptor)."""

    name: str
    parents: tuple[str, ...]
    members: frozenset[tuple[str, str]]
    links: frozenset[Link]
    classes: frozenset[str]


@dataclass(frozen=True)
class _Constants:
    """The constants of a class by their place: texts, and the places that other constants consist of."""

    texts: Mapping[int, str]
    tags: Mapping[int, int]
    places: Mapping[int, tuple[int, ...]]

    def class_name(self, place: int) -> str:
        return self.texts[self.places[place][0]]

    def link(self, place: int) -> Link:
        owner, name_and_type = self.places[place]
        name, descriptor = self.places[name_and_type]
        return Link(self.class_name(owner), self.texts[name], self.texts[descriptor])

    def with_tag(self, *tags: int) -> Iterator[int]:
        return (place for place, tag in self.tags.items() if tag in tags)


def read_class(content: bytes) -> ClassFile:
    """Read a class file. Raises ValueError if it is none."""
    file = BytesIO(content)
    magic, _, _, count = _unpack(file, ">IHHH")
    if magic != _MAGIC:
        raise ValueError("the content does not begin as a Java class does")
    constants = _read_constants(file, count)
    _, this, parent, interfaces = _unpack(file, ">HHHH")
    parents = (*([parent] if parent else []), *_unpack(file, f">{interfaces}H"))
    members = [*_read_members(file), *_read_members(file)]
    texts = constants.texts
    return ClassFile(
        name=constants.class_name(this),
        parents=tuple(map(constants.class_name, parents)),
        members=frozenset((texts[name], texts[descriptor]) for name, descriptor in members),
        links=frozenset(map(constants.link, constants.with_tag(*_MEMBERS))),
        classes=frozenset(map(constants.class_name, constants.with_tag(_CLASS))),
    )


def _read_constants(file: BytesIO, count: int) -> _Constants:
    texts: dict[int, str] = {}
    tags: dict[int, int] = {}
    places: dict[int, tuple[int, ...]] = {}
    place = 1
    while place < count:
        (tag,) = _unpack(file, ">B")
        if tag == _UTF8:
            (length,) = _unpack(file, ">H")
            texts[place] = file.read(length).decode("utf-8", "replace")
        else:
            content = file.read(_LENGTHS[tag])
            tags[place] = tag
            places[place] = struct.unpack(f">{len(content) // 2}H", content[: len(content) // 2 * 2])
        place += 2 if tag in (_LONG, _DOUBLE) else 1
    return _Constants(texts, tags, places)


def _read_members(file: BytesIO) -> list[tuple[int, int]]:
    found = []
    (count,) = _unpack(file, ">H")
    for _ in range(count):
        _, name, descriptor, attributes = _unpack(file, ">HHHH")
        found.append((name, descriptor))
        for _ in range(attributes):
            _, length = _unpack(file, ">HI")
            file.seek(length, 1)
    return found


def _unpack(file: BytesIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))
