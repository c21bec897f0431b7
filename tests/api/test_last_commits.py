"""The last commit of a table is read again only after the table's timeline has grown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.console.views import commit
from tributary.api import last_commits
from tributary.api.last_commits import LastCommit, LastCommits
from tributary.api.timeline import Commit
from tributary.operations.kept_commits import kept_commits


@dataclass
class Listed:
    """A table's timeline that counts how often its last commit was read."""

    last_instant: str | None
    commit: Commit | None
    reads: int = 0

    def last_commit(self) -> Commit | None:
        self.reads += 1
        return self.commit


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Listed:
    """The timeline of every table."""
    found = Listed("20260102030400000", commit())
    monkeypatch.setattr(last_commits, "read_timeline", lambda *_: found)
    return found


def read(commits: LastCommits, path: str = "silver/orders") -> LastCommit | None:
    return commits.read(cast(Any, None), path)


def test_a_commit_is_read_once_for_each_new_instant(listed: Listed) -> None:
    commits = LastCommits()
    assert [read(commits) for _ in range(2)] == [LastCommit("20260102030400000", commit())] * 2
    assert listed.reads == 1
    # A compaction applies no events.
    listed.last_instant = "20260102030500000"
    assert read(commits) == LastCommit("20260102030500000", commit())
    assert listed.reads == 2


def test_a_table_that_was_removed_has_no_commit_and_is_read_when_it_is_back(listed: Listed) -> None:
    commits = LastCommits()
    read(commits)
    listed.last_instant = None
    assert read(commits) is None
    listed.last_instant = "20260102030400000"
    assert read(commits) is not None
    assert listed.reads == 2


def test_a_table_whose_commits_applied_nothing_is_not_read_again(listed: Listed) -> None:
    listed.commit = None
    commits = LastCommits()
    assert [read(commits) for _ in range(2)] == [LastCommit("20260102030400000", None)] * 2
    assert listed.reads == 1


def test_the_next_command_reads_what_is_new_and_tells_the_same(listed: Listed, tmp_path: Path) -> None:
    path = tmp_path / "commits.json"
    found = []
    for _ in range(2):
        with kept_commits(path) as commits:
            found.append(read(commits))
    assert listed.reads == 1
    assert found == [LastCommit("20260102030400000", commit())] * 2
    listed.last_instant, listed.commit = "20260102030500000", replace(commit(), rows=8)
    with kept_commits(path) as commits:
        assert read(commits) == LastCommit("20260102030500000", listed.commit)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_kept_commit_tells_no_schema_and_a_table_that_is_gone_is_forgotten(listed: Listed) -> None:
    listed.commit = replace(commit(), schema="{}")
    commits = LastCommits()
    assert read(commits) == LastCommit("20260102030400000", commit())
    read(commits, "silver/users")
    commits.keep_only(["silver/users"])
    assert commits.all().keys() == {"silver/users"}


@pytest.mark.parametrize("whole", ['{"tables"', '"commit":{', 'version\\":', 'topic\\"'])
def test_a_damaged_file_only_costs_a_read(listed: Listed, tmp_path: Path, whole: str) -> None:
    path = tmp_path / "commits.json"
    with kept_commits(path) as commits:
        read(commits)
    text = path.read_text()
    path.write_text(text.replace(whole, "x"))
    assert path.read_text() != text
    with kept_commits(path) as commits:
        assert read(commits) == LastCommit("20260102030400000", commit())
    assert listed.reads == 2
