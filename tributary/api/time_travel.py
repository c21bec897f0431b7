"""Time travel: the commit that a moment selects, and whether the table still has all files of that state."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tributary.api.tables import LakeTable
from tributary.api.timeline import read_earliest_retained, read_first_instant, read_retyped_columns
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import EditLakeFile, ReadRunbook

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

_INSTANT = re.compile(r"\d{17}")


class NotAMoment(TributaryError):
    """A text that is neither an instant nor a time."""


class OutOfHistory(TributaryError):
    """A moment before the table's first commit, or older than the states that the table still has."""


class ReadInSpark(TributaryError):
    """A state of a table that hudi-rs cannot read."""


def instant_of(moment: str | datetime) -> str:
    """Return the instant of a time in Hudi's form: 17 digits, in UTC.

    A text is already an instant, or a time in ISO 8601. A time without a zone is in UTC. Raises `NotAMoment`.
    """
    if isinstance(moment, str):
        if _INSTANT.fullmatch(moment):
            return moment
        moment = _parsed(moment)
    utc = _in_utc(moment)
    return f"{utc:%Y%m%d%H%M%S}{utc.microsecond // 1000:03}"


def time_of(text: str) -> datetime:
    """Return the UTC time that a text in ISO 8601, or an instant, names. Raises `NotAMoment`."""
    if _INSTANT.fullmatch(text):
        return datetime.strptime(f"{text}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    return _in_utc(_parsed(text))


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise NotAMoment(
            "This is neither an instant nor a time",
            found=text,
            expected="the instant of a commit, or a UTC time such as 2026-01-02 03:04:05",
        ) from error


def check_readable(filesystem: S3FileSystem, table: LakeTable, instant: str) -> None:
    """Check that hudi-rs can read the table's whole state at the instant.

    Raises `OutOfHistory` if the table or a part of that state is missing, and `ReadInSpark` if hudi-rs would
    read its values in types that came later.
    """
    _check_retained(filesystem, table, instant)
    retyped = read_retyped_columns(filesystem, table.path, instant)
    if retyped:
        raise ReadInSpark(
            "Column types have changed since, and only Spark SQL can read this state",
            where=str(table.name),
            found=f"another type of {', '.join(sorted(retyped))}",
            remedy=ReadRunbook("older state"),
        )


def _check_retained(filesystem: S3FileSystem, table: LakeTable, instant: str) -> None:
    retained = read_earliest_retained(filesystem, table.path)
    if retained is not None:
        if instant < retained:
            raise OutOfHistory(
                "The lake no longer holds this state of the table",
                where=str(table.name),
                found=instant,
                expected=f"{retained} or later",
                remedy=EditLakeFile("raise the table's history to keep later states for longer"),
            )
        return
    first = read_first_instant(filesystem, table.path)
    if first is not None and instant < first:
        raise OutOfHistory(
            "The table had no commit yet",
            where=str(table.name),
            found=instant,
            expected=f"{first} or later",
        )
