"""The cache of fetched and built files, which several processes can share."""

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
    """Return `$TRIBUTARY_CACHE`, or else `tributary` in `$XDG_CACHE_HOME` or `~/.cache`.

    The folder may not exist yet.
    """
    if chosen := os.environ.get("TRIBUTARY_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification says to ignore a relative path.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "tributary"


def cached_folder(kind: str, key: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder `<cache>/<kind>/<key>`. The first call fills it with `fill`.

    `key` must cover everything that the content depends on. `fill` gets an empty folder, which gets its final
    name only if `fill` succeeds. Other processes that need the folder wait.
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
    """Create the folder `path` within the context, without a killed process's remains, and delete it after.

    Hold a lock around it: two users at the same time would delete each other's folder.
    """
    _remove(path)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        _remove(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock file `path` and hold it exclusively, against other processes and threads.

    A killed process releases the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_intact(path: Path, sha256: str) -> bool:
    """Tell whether the file exists with this SHA-256.

    The file is read only if it has changed since it was last found intact. A note next to the file has its
    size and times at that moment.
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
        pass  # the file was never checked or its note is damaged, so check the file
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
    # Nobody can set the change time back, so a file looks different after every write.
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.intact")
