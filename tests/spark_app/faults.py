"""A Hudi table whose writer dies in the middle, as a killed process leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from unittest import mock

from spark_app import table_ingest
from spark_app.hudi import HudiTable
from spark_app.quarantine import write_quarantine

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
    write = HudiTable.write

    def killed_write(table: HudiTable, *arguments: object, **options: object) -> None:
        if when != "before the write":
            write(table, *arguments, **options)  # type: ignore[arg-type]
        if when == "within the write":
            uncomplete(table)
        raise Killed

    def killed_after_quarantine(*arguments: object) -> str:
        write_quarantine(*arguments)  # type: ignore[arg-type]
        raise Killed

    target = (
        mock.patch.object(table_ingest, "write_quarantine", killed_after_quarantine)
        if when == "after the quarantine"
        else mock.patch.object(HudiTable, "write", killed_write)
    )
    try:
        with target:
            yield
    except Killed:
        pass


def uncomplete(table: HudiTable) -> None:
    """Takes back the completion of the latest instant: all it wrote is there, but nothing says that it
    ended."""
    completed = Path(table.path, ".hoodie").glob("[0-9]*.*commit")
    max(completed, key=lambda path: path.name).unlink()
