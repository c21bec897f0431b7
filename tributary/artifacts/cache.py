"""Knows where fetched and built files are kept for later runs, and how several processes share that place."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """`$TRIBUTARY_CACHE`, else `tributary` in `$XDG_CACHE_HOME`, else in `~/.cache`. It may not exist yet."""
    if chosen := os.environ.get("TRIBUTARY_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification: a relative path there is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "tributary"


def cached_folder(kind: str, key: str, fill: Callable[[Path], None]) -> Path:
    """The folder `<cache>/<kind>/<key>`, filled by `fill` the first time anyone asks for it.

    `key` must say everything that the content depends on. `fill` gets an empty folder; what it leaves there
    appears under the final name whole or, if it raises, not at all. Other processes that ask meanwhile wait.
    """
    folder = cache_root() / kind / key
    if folder.is_dir():
        return folder
    with locked(folder.with_name(f"{key}.lock")):
        if not folder.is_dir():
            with empty_folder(folder.with_name(f"{key}.partial")) as partial:
                fill(partial)
                partial.rename(folder)
    return folder


@contextmanager
def empty_folder(path: Path) -> Iterator[Path]:
    """The folder `path`, without what a killed process may have left there; it is gone afterwards.

    For the holder of a lock only: two at the same time would take the folder from each other.
    """
    _remove(path)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        _remove(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock file `path` alone among all processes and threads, after waiting for it.

    A process that is killed lets go of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_intact(path: Path, sha256: str) -> bool:
    """Whether the file is there with this SHA-256.

    It is read only if it has changed since this was last found true: a note beside it says how the file
    system described it then.
    """
    try:
        looks = _looks(path)
    except FileNotFoundError:
        return False
    note, expected = _note(path), f"{sha256} {looks}\n"
    try:
        if note.read_text(encoding="ascii") == expected:
            return True
    except (FileNotFoundError, UnicodeDecodeError):
        pass  # never checked, or a note that is itself damaged: the file decides
    if sha256_of(path) != sha256:
        return False
    fresh_note = note.with_name(f"{note.name}.{os.getpid()}.{threading.get_ident()}")
    fresh_note.write_text(expected, encoding="ascii")
    fresh_note.replace(note)
    return True


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def _looks(path: Path) -> str:
    # The change time cannot be set back, so a file that was written to always looks different.
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.intact")
