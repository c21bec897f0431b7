"""A Hudi table whose writer dies during a write, in the state that a killed process leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import pytest
from py4j.protocol import Py4JError

from spark_app.hudi import options
from spark_app.hudi.append_writer import AppendWriter
from spark_app.hudi.hudi_table import HudiTable
from spark_app.table import setting_aside
from spark_app.table.quarantine import write_quarantine

Death = Literal["before the write", "within the write", "after the write", "after the quarantine"]
DEATHS: tuple[Death, ...] = (
    "before the write",
    "within the write",
    "after the write",
    "after the quarantine",
)


class Killed(BaseException):
    """The end of the process, which nothing may catch."""


@contextmanager
def death(when: Death) -> Iterator[None]:
    """End the first write in the context at this point, if it gets there, and suppress the exception."""

    def killing(write: Callable[..., object]) -> Callable[..., object]:
        def killed_write(table: HudiTable, *arguments: object) -> None:
            if when == "after the write":
                write(table, *arguments)
            if when == "within the write":
                with (
                    mock.patch.dict(options.SMALL_COMMIT_OPTIONS, _FAILING),
                    mock.patch.object(AppendWriter, "_complete", side_effect=_NotCompleted),
                    pytest.raises((Py4JError, _NotCompleted)),
                ):
                    write(replace(table), *arguments)
            raise Killed

        return killed_write

    def killed_after_quarantine(*arguments: object) -> str:
        write_quarantine(*arguments)  # type: ignore[arg-type]
        raise Killed

    target: Any = HudiTable
    patches: dict[str, Any] = {"write": killing(HudiTable.write), "upsert": killing(HudiTable.upsert)}
    if when == "after the quarantine":
        target, patches = setting_aside, {"write_quarantine": killed_after_quarantine}
    with suppress(Killed), mock.patch.multiple(target, **patches):
        yield


_FAILING = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
"""With these options, a write by Hudi fails after it has written all its files, right before it completes.

It cleans up nothing."""


class _NotCompleted(Exception):
    """The same failure in a write by the app's own `AppendWriter`."""


def take_back_compaction(table: HudiTable, before: frozenset[Path]) -> None:
    """Undo the new compaction, as if the process had died right before completing it.

    The next process knows its files by the markers, which Hudi removes once the compaction is complete."""
    for completed in compactions(table) - before:
        completed.unlink()
        markers = completed.parent / ".temp" / completed.stem
        for base_file in Path(table.path).rglob(f"*_{completed.stem}.parquet"):
            marker = markers / base_file.relative_to(table.path)
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.with_name(f"{marker.name}.marker.CREATE").touch()


def compactions(table: HudiTable) -> frozenset[Path]:
    """Return the completed compactions of a merge-on-read table."""
    return frozenset(Path(table.path, ".hoodie").glob("[0-9]*.commit"))
