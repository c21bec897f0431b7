"""Check that every class and member that our Java links to is there, before anything runs it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from spark_app.acceleration.class_file import ClassFile, Link, read_class
from tributary.contract.errors import TributaryError

ReadClass = Callable[[str], bytes | None]
"""Returns the content of a class by its name with slashes; None if there is no such class."""

_OF_JAVA = ("java/", "javax/", "jdk/", "sun/")
_OF_OBJECT = frozenset({"equals", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait", "clone"})
_OBJECT = "java/lang/Object"
_WITHOUT_MEMBERS = ("java/io/Serializable", "java/lang/Cloneable")


def missing_links(classes: Iterable[ClassFile], read: ReadClass) -> Sequence[str]:
    """Return what the classes link to and `read` does not find, such as `org.example.Thing.size()I`.

    A member may be declared by any class that its owner inherits from. Java's own classes are taken to have
    what is asked of them if `read` does not find them, because jars do not hold them."""
    own = {found.name: found for found in classes}
    known: dict[str, ClassFile | None] = dict(own)

    def find(name: str) -> ClassFile | None:
        if name not in known:
            content = read(name)
            known[name] = None if content is None else read_class(content)
        return known[name]

    def is_there(link: Link) -> bool:
        return any(_declares(ancestor, link, find) for ancestor in _ancestors(link.owner, find))

    used = {_element(name) for found in own.values() for name in found.classes}
    absent = {name for name in used if name and not name.startswith(_OF_JAVA) and find(name) is None}
    links = {link for found in own.values() for link in found.links}
    checked = {
        link for link in links if not link.owner.startswith((*_OF_JAVA, "[")) and link.owner not in absent
    }
    return sorted(
        [
            *(name.replace("/", ".") for name in absent),
            *(str(link) for link in checked if not is_there(link)),
        ]
    )


def classes_in(jar: Path) -> Sequence[ClassFile]:
    """Return all classes in a jar."""
    with zipfile.ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if name.endswith(".class")]
        return [read_class(archive.read(name)) for name in names]


class UnreadableJar(TributaryError):
    """A jar that is not whole, or a link to a file that is not there."""


@contextmanager
def in_jars(jars: Sequence[Path]) -> Iterator[ReadClass]:
    """Open the jars and yield a reader of their classes. The first jar with a class counts.

    Raise UnreadableJar.
    """
    with ExitStack() as opened:
        archives = [opened.enter_context(_archive(jar)) for jar in jars]
        places: dict[str, zipfile.ZipFile] = {}
        for archive in reversed(archives):
            places |= dict.fromkeys(archive.namelist(), archive)

        def read(name: str) -> bytes | None:
            archive = places.get(f"{name}.class")
            return None if archive is None else archive.read(f"{name}.class")

        yield read


def _archive(jar: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(jar)
    except (OSError, zipfile.BadZipFile) as error:
        raise UnreadableJar(
            "the jar cannot be read",
            where=str(jar),
            found=str(error),
            remedy="Copy the file itself from the release again, all of it and not only a link to it.",
        ) from error


def _ancestors(name: str, find: Callable[[str], ClassFile | None]) -> Iterator[str]:
    """Yield the class and everything that it inherits from, each once."""
    seen, left = {name}, [name]
    while left:
        yield (current := left.pop())
        found = find(current)
        for parent in () if found is None else found.parents:
            if parent not in seen:
                seen.add(parent)
                left.append(parent)


def _declares(name: str, link: Link, find: Callable[[str], ClassFile | None]) -> bool:
    found = find(name)
    if found is not None:
        return (link.name, link.descriptor) in found.members
    if name == _OBJECT:
        return link.name in _OF_OBJECT
    return name.startswith(_OF_JAVA) and name not in _WITHOUT_MEMBERS


def _element(name: str) -> str:
    """Return the class of an array's elements; nothing if they are no objects."""
    if not name.startswith("["):
        return name
    element = name.lstrip("[")
    return element[1:-1] if element.startswith("L") else ""
