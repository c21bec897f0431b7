"""A Hudi table whose writer dies in the middle, as a killed process leaves it."""

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
    """The process has ended: nothing may catch it."""


@contextmanager
def death(when: Death) -> Iterator[None]:
    """Ends the first write within the context at that point, where it comes there, and swallows the end."""

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
"""With them a write of Hudi's fails once all its files are there, right before it is completed, and tidies
nothing."""


class _NotCompleted(Exception):
    """The same of a write that is not Hudi's."""


def take_back_compaction(table: HudiTable, before: frozenset[Path]) -> None:
    """As if the process had died right before it completed the compaction that is not among those before.

    The next process knows its files by the markers, which Hudi removes once the compaction is complete."""
    for completed in compactions(table) - before:
        completed.unlink()
        markers = completed.parent / ".temp" / completed.stem
        for base_file in Path(table.path).rglob(f"*_{completed.stem}.parquet"):
            marker = markers / base_file.relative_to(table.path)
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.with_name(f"{marker.name}.marker.CREATE").touch()


def compactions(table: HudiTable) -> frozenset[Path]:
    """The completed compactions of a merge-on-read table."""
    return frozenset(Path(table.path, ".hoodie").glob("[0-9]*.commit"))
