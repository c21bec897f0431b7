"""Small text files next to a lake's tables, which another process may remove at any time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

_READERS = 8


def read_text(filesystem: S3FileSystem, path: str) -> str | None:
    """Return the content of a file, or None if there is no such file."""
    try:
        with filesystem.open_input_stream(path) as stream:
            content: bytes = stream.read()
            return content.decode()
    except FileNotFoundError:
        return None


def read_texts(filesystem: S3FileSystem, folder: str) -> Sequence[str]:
    """Return the contents of all files below a folder, at any depth. The folder need not exist."""
    from pyarrow.fs import FileSelector

    infos = filesystem.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
    paths = [info.path for info in infos if info.is_file]
    with ThreadPoolExecutor(_READERS) as pool:
        return [text for text in pool.map(partial(read_text, filesystem), paths) if text is not None]


def write_text(filesystem: S3FileSystem, path: str, text: str) -> None:
    """Write a file, and replace its earlier content."""
    with filesystem.open_output_stream(path) as stream:
        stream.write(text.encode())


def delete_file(filesystem: S3FileSystem, path: str) -> None:
    """Delete a file, if there is one."""
    if filesystem.get_file_info(path).is_file:
        filesystem.delete_file(path)
