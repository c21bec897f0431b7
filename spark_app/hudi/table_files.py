"""The files in a table's folder, by their paths in it, as Hadoop's file systems show them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_app.hudi import file_removal
from spark_app.hudi.java_classes import HadoopClasses, hadoop_classes

TIMELINE = ".hoodie"
"""The folder of the timeline."""

TEMPORARY = f"{TIMELINE}/.temp"
"""The folder for the markers of commits, and for drafts."""

PROPERTIES = f"{TIMELINE}/hoodie.properties"
"""The file with the properties of the table."""

_CHECKSUM = re.compile(r"\..+\.crc")
"""The names of the files in which Hadoop keeps the checksums of other files on a disk."""
_STATUS = re.compile(
    r"\w*\{path=(?:.*/)?(?P<name>[^/]+); isDirectory=(?P<is_folder>true|false);"
    r".*[; ]modification_time=(?P<written_ms>\d+);.*"
)
"""The text of org.apache.hadoop.fs.FileStatus and its subclasses. A name has no slash."""
_NO_FILE = "java.io.FileNotFoundException"
_COPY_BYTES = 1 << 16


@dataclass(frozen=True)
class Entry:
    """A file or a folder in a folder. `written_ms`: when it was last written, milliseconds since 1970."""

    name: str
    is_folder: bool
    written_ms: int


@dataclass(frozen=True)
class TableFiles:
    """The files of the table at `table`, a Hadoop path. All other paths are relative to it."""

    spark: SparkSession
    table: str

    def has_table(self) -> bool:
        """Return whether there is a table. Takes one or two requests."""
        # Hudi replaces the properties in three steps: it writes the backup, removes them, and writes them.
        return self.exists(PROPERTIES) or self.exists(f"{PROPERTIES}.backup")

    def exists(self, path: str) -> bool:
        return bool(self._file_system.exists(self._path(path)))

    def holds_a_file(self, folder: str) -> bool:
        """Return whether there is a file in the folder, at any depth."""
        return bool(self._file_system.listFiles(self._path(folder), True).hasNext())

    def names_in(self, folder: str) -> Sequence[str]:
        """Return the names of the files and folders in the folder."""
        return [entry.name for entry in self.list(folder)]

    def list(self, folder: str) -> Sequence[Entry]:
        """List the files and folders in the folder. On S3, a request lists a thousand of them.

        Raises `FileNotFoundError` if there is no such folder."""
        try:
            return self._entries(folder)
        except Py4JJavaError as error:
            if str(error.java_exception).startswith(_NO_FILE):
                raise FileNotFoundError(f"there is no {self._folder(folder)}") from error
            raise

    def _entries(self, folder: str) -> Sequence[Entry]:
        path, files = self._path(folder), self._file_system
        # FileSystem#getScheme need not be implemented, and getUri must.
        if files.getUri().getScheme() == "file":
            return list_on_disk(Path(str(path.toUri().getPath())))
        entries = [parse_entry(text) for text in self._classes.texts(files.listStatusIterator(path))]
        known = [entry for entry in entries if entry is not None]
        return known if len(known) == len(entries) else _entries_of(files.listStatus(path))

    def read(self, path: str) -> bytes:
        """Return the content of the file."""
        source = self._file_system.open(self._path(path))
        try:
            return bytes(source.readAllBytes())
        finally:
            source.close()

    def write(self, path: str, content: bytes) -> None:
        """Write the file, and replace its earlier content."""
        with self._created(path) as output:
            output.write(content)

    def concatenate(self, paths: Iterable[str], into: str, draft: str) -> None:
        """Concatenate the files, in this order, into one file. That file appears only when it is complete."""
        files = self._file_system
        with self._created(draft) as output:
            for path in paths:
                source = files.open(self._path(path))
                try:
                    self._classes.io_utils.copyBytes(source, output, _COPY_BYTES, False)
                finally:
                    source.close()
        if not files.rename(self._path(draft), self._path(into)):
            raise OSError(f"{draft} in {self.table} cannot be renamed to {into}")

    def remove(self, paths: Collection[str], folder: str = "") -> None:
        """Remove the files, paths in the folder, on S3 a thousand per request. Raises `FilesNotRemoved`."""
        file_removal.remove_files(self.spark, self._folder(folder), paths)

    def remove_in_order(self, paths: Sequence[str], folder: str = "") -> None:
        """Remove the files, paths in the folder, each once the last one is gone. Raises `FilesNotRemoved`."""
        file_removal.remove_files_in_order(self.spark, self._folder(folder), paths)

    def remove_folder(self, path: str) -> None:
        """Remove the folder and everything in it."""
        self._file_system.delete(self._path(path), True)

    @contextmanager
    def _created(self, path: str) -> Iterator[Any]:
        """Open a stream that overwrites the file."""
        output = self._file_system.create(self._path(path), True)
        try:
            yield output
        finally:
            output.close()

    def _folder(self, path: str) -> str:
        return f"{self.table}/{path}".rstrip("/")

    def _path(self, path: str) -> Any:
        return self._classes.path(self._folder(path))

    @property
    def _file_system(self) -> Any:
        return self._classes.path(self.table).getFileSystem(self._configuration)

    @property
    def _configuration(self) -> Any:
        return self.spark.sparkContext._jsc.hadoopConfiguration()

    @property
    def _classes(self) -> HadoopClasses:
        return hadoop_classes(self.spark)


def list_on_disk(folder: Path) -> Sequence[Entry]:
    """List a folder of this machine.

    Hadoop would start a process for each file, to find out who owns it."""
    entries = []
    with os.scandir(folder) as found:
        for entry in found:
            # Another process can remove a file after it was listed.
            with suppress(FileNotFoundError):
                written_ms = entry.stat().st_mtime_ns // 1_000_000
                entries.append(Entry(entry.name, entry.is_dir(), written_ms))
    return [entry for entry in entries if not _CHECKSUM.fullmatch(entry.name)]


def _entries_of(statuses: Any) -> Sequence[Entry]:
    """Ask for each file on its own, because this file system describes its files in another form."""
    return [
        Entry(str(one.getPath().getName()), bool(one.isDirectory()), int(one.getModificationTime()))
        for one in statuses
    ]


def parse_entry(status: str) -> Entry | None:
    """Parse the text of a FileStatus of Hadoop. Return None if it has another form."""
    found = _STATUS.fullmatch(status)
    if found is None:
        return None
    return Entry(found["name"], found["is_folder"] == "true", int(found["written_ms"]))
