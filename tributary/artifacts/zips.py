"""Write zips whose bytes depend only on the names and contents of their files."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

_THE_FIRST_DAY_OF_ZIP = (1980, 1, 1, 0, 0, 0)
_MADE_ON_UNIX = 3


def write_zip(path: Path, files: Mapping[str, Path | bytes]) -> None:
    """Write a zip of `files` (name in the zip → a file, or its content), sorted by name.

    The files are stored uncompressed, because zlib's output differs between versions. Most are jars, which
    are compressed already.
    """
    with ZipFile(path, "w") as archive:
        for name, source in sorted(files.items()):
            entry = ZipInfo(name, _THE_FIRST_DAY_OF_ZIP)
            entry.compress_type = ZIP_STORED
            entry.create_system = _MADE_ON_UNIX
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.file_size = len(source) if isinstance(source, bytes) else source.stat().st_size
            with (
                archive.open(entry, "w") as stored,
                BytesIO(source) if isinstance(source, bytes) else source.open("rb") as content,
            ):
                shutil.copyfileobj(content, stored)


def unpack_zip(path: Path, folder: Path) -> None:
    """Unpack a zip to `folder`. Raise zipfile.BadZipFile if a file in the zip is damaged."""
    with ZipFile(path) as archive:
        archive.extractall(folder)
