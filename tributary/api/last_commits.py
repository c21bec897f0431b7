"""The last commits of tables, kept between looks at a lake."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tributary.api.timeline import Commit, read_timeline

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


@dataclass(frozen=True)
class LastCommit:
    """The end of a table's timeline.

    instant  the last instant that was completed, of whatever kind
    commit   the last commit that applied events, or None. It was completed at the instant or before it
    """

    instant: str
    commit: Commit | None


@dataclass
class LastCommits:
    """The last commit of each table, by the table's path.

    A look at a table costs a listing of its timeline, and a read of its last commit only if the timeline has
    grown. Several threads may look. The commits do not tell their schemas.
    """

    _kept: dict[str, LastCommit] = field(default_factory=dict, repr=False)

    def read(self, filesystem: S3FileSystem, path: str) -> LastCommit | None:
        """Return the end of the timeline of the table at the path, or None if it has no commit."""
        timeline = read_timeline(filesystem, path)
        if timeline.last_instant is None:
            self._kept.pop(path, None)
            return None
        kept = self._kept.get(path)
        if kept is None or kept.instant != timeline.last_instant:
            found = timeline.last_commit()
            commit = None if found is None else replace(found, schema=None)
            kept = self._kept[path] = LastCommit(timeline.last_instant, commit)
        return kept

    def keep_only(self, paths: Collection[str]) -> None:
        """Forget the tables at all other paths, which the lake no longer has."""
        for path in self._kept.keys() - {*paths}:
            del self._kept[path]

    def all(self) -> Mapping[str, LastCommit]:
        """Return what it has kept."""
        return dict(self._kept)
