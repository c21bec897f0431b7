"""The last commits of this machine's tables, kept in the state folder from one command to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from spark_app.ledger.ledger import Ledger, LedgerError
from tributary.api.last_commits import LastCommit, LastCommits
from tributary.api.timeline import Commit
from tributary.operations.kept_file import KeptFile

FILE = "last-commits.json"


class _Commit(BaseModel):
    """A commit as `LastCommits` has it, which is without the columns' schema."""

    model_config = ConfigDict(frozen=True)

    instant: str
    completed: datetime
    rows: int
    deletes: int
    written: int
    ledger: str


class _LastCommit(BaseModel):
    model_config = ConfigDict(frozen=True)

    instant: str
    commit: _Commit | None


class _LastCommits(BaseModel):
    tables: dict[str, _LastCommit]


@contextmanager
def kept_commits(path: Path) -> Iterator[LastCommits]:
    """Yield what the file at the path has kept, and keep there what the context has read besides."""
    file = KeptFile(path, _LastCommits)
    known = _read(file.read())
    commits = LastCommits(dict(known))
    yield commits
    if (found := commits.all()) != known:
        file.write(_LastCommits(tables={path: _to_file(one) for path, one in found.items()}))


def _read(content: _LastCommits | None) -> dict[str, LastCommit]:
    if content is None:
        return {}
    try:
        return {path: _from_file(one) for path, one in content.tables.items()}
    except (LedgerError, ValueError, KeyError):  # Another version of Tributary wrote it, or it is damaged.
        return {}


def _from_file(kept: _LastCommit) -> LastCommit:
    if kept.commit is None:
        return LastCommit(kept.instant, None)
    ledger = Ledger.from_json(kept.commit.ledger)
    return LastCommit(kept.instant, Commit(**{**dict(kept.commit), "ledger": ledger}))


def _to_file(found: LastCommit) -> _LastCommit:
    commit = found.commit
    if commit is None:
        return _LastCommit(instant=found.instant, commit=None)
    kept = _Commit(
        instant=commit.instant,
        completed=commit.completed,
        rows=commit.rows,
        deletes=commit.deletes,
        written=commit.written,
        ledger=commit.ledger.to_json(),
    )
    return _LastCommit(instant=found.instant, commit=kept)
