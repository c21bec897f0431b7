"""Read the keys to erase, and write what became of them, through Hadoop's file systems.

Keys are personal data. So a run with a report prints neither keys nor errors, which may quote them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pyspark.sql import SparkSession

from spark_app.reports import Blocked, ProgressWriter
from spark_app.run.text_files import read_text, write_text
from tributary.contract.errors import TributaryError, told_by


class KeysUnreadable(TributaryError):
    """The keys to erase are gone, or they are no list of keys."""


class ErasureFailed(TributaryError):
    """An erasure failed. Only its report says why."""


@dataclass(frozen=True)
class ErasureFiles:
    """The keys to erase, and the report. Each is a URI, or a path on this machine.

    report  None: the run prints its reports, as any other does
    """

    spark: SparkSession
    keys: str
    report: str | None

    def read_keys(self) -> Sequence[Mapping[str, str]]:
        """Return the keys. Raises KeysUnreadable, whose text quotes none of them."""
        text = read_text(self.spark, _uri(self.keys))
        if text is None:
            raise KeysUnreadable(
                "The keys to erase are gone",
                where=self.keys,
                expected="a file with keys, which the command keeps until the job has ended",
                remedy="Run the command again.",
            )
        keys = _parsed(text)
        if keys is None:
            raise KeysUnreadable(
                "These are no keys to erase", where=self.keys, expected='JSON such as [{"id": "7"}]'
            )
        return keys

    @contextmanager
    def reporting(self, out: TextIO, table: str) -> Iterator[TextIO]:
        """Yield where to write the run's reports: `out`, or into the report, which is written at the end.

        With a report, an error in the context is written to it, and ErasureFailed is raised in its place.
        KeysUnreadable is raised itself.
        """
        if self.report is None:
            yield out
            return
        # At INFO, the driver logs the conditions of queries, which contain the keys (FileSourceStrategy,
        # V2ScanRelationPushDown, GroupBasedRowLevelOperationScanPlanning). Executors keep their level. No
        # pushed-down filter, which they may log, contains a key. Their logs on a cluster are not tested.
        self.spark.sparkContext.setLogLevel("WARN")
        lines = io.StringIO()
        try:
            yield lines
        except KeysUnreadable as error:  # It quotes no key, and without the keys there is no report.
            ProgressWriter(lines).write(_blocked(table, error))
            raise
        except Exception as error:  # noqa: BLE001  Any text may quote a key.
            ProgressWriter(lines).write(_blocked(table, error))
            raise ErasureFailed("The erasure failed. Its report says why") from None
        finally:
            self._write(self.report, lines.getvalue())

    def _write(self, report: str, text: str) -> None:
        """Write the report, unless the command is gone, which has removed the keys.

        Nobody would remove the report then.
        """
        if read_text(self.spark, _uri(self.keys)) is not None:
            write_text(self.spark, _uri(report), text)


def _uri(address: str) -> str:
    # Without a scheme, Hadoop would look in its default file system, which is HDFS on a cluster. Hadoop does
    # not expect a path to be quoted.
    return address if "://" in address else f"file://{Path(address).absolute()}"


def _parsed(text: str) -> Sequence[Mapping[str, str]] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    are_keys = isinstance(found, list) and all(
        isinstance(key, dict) and all(isinstance(value, str) for value in key.values()) for key in found
    )
    if not found or not are_keys:
        return None
    keys: Sequence[Mapping[str, str]] = found
    return keys


def _blocked(table: str, error: Exception) -> Blocked:
    if isinstance(error, TributaryError):
        return Blocked(table, error.reason, error.remedies)
    return Blocked(table, told_by(error))
