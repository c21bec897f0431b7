"""The files in a table's folder, by their paths in it, as seen by Hadoop and Hudi's storage."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from spark_app.hudi import file_removal
from spark_app.hudi.java_classes import java_classes

TIMELINE = ".hoodie"
"""The folder of the timeline."""

TEMPORARY = f"{TIMELINE}/.temp"
"""The folder for the markers of commits, and for drafts."""

_PROPERTIES = f"{TIMELINE}/hoodie.properties"
_COPY_BYTES = 1 << 16
_LISTED = re.compile(r"StoragePathInfo\{path=.*/([^/,]+),.*")


@dataclass(frozen=True)
class TableFiles:
    """The files of the table at `table`, a Hadoop path. All other paths are relative to it."""

    spark: SparkSession
    table: str

    def has_table(self) -> bool:
        """Return whether there is a table. Takes one or two requests."""
        # Hudi replaces the properties in three steps: it writes the backup, removes them, and writes them.
        return self.exists(_PROPERTIES) or self.exists(f"{_PROPERTIES}.backup")

    def exists(self, path: str) -> bool:
        return bool(self._file_system.exists(self._path(path)))

    def holds_a_file(self, folder: str) -> bool:
        """Return whether there is a file in the folder, at any depth."""
        return bool(self._file_system.listFiles(self._path(folder), True).hasNext())

    def names_in(self, folder: str) -> Sequence[str]:
        """Return the names of the files and folders in the folder."""
        entries = self._storage.listDirectEntries(self._classes.storage_path(self._folder(folder)))
        listed = map(_LISTED.fullmatch, self._classes.texts(entries))
        return [entry[1] for entry in listed if entry is not None]

    def partitions(self) -> frozenset[str]:
        """Return the paths of all partitions, by listing the table's folders."""
        classes = self._classes
        context = classes.local_context(self.storage_configuration)
        base_path = classes.storage_path(self.table)
        return frozenset(classes.fs_utils.getAllPartitionPaths(context, self._storage, base_path, False))

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

    @cached_property
    def storage_configuration(self) -> Any:
        """Hudi's view of Hadoop's configuration."""
        return self._classes.hadoop_fs_utils.getStorageConf(self._configuration)

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
        return self._classes.path(f"{self.table}/{path}")

    @property
    def _file_system(self) -> Any:
        return self._classes.path(self.table).getFileSystem(self._configuration)

    @property
    def _storage(self) -> Any:
        return self._classes.storage_utils.getStorage(self.table, self.storage_configuration)

    @property
    def _configuration(self) -> Any:
        return self.spark.sparkContext._jsc.hadoopConfiguration()

    @property
    def _classes(self) -> Any:
        return java_classes(self.spark)
