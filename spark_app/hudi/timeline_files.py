"""Hudi's timeline by file name: which files to remove in order to remove its oldest instants.

Source of the format: org.apache.hudi's InstantFileNameGeneratorV1, table version 6. An instant has a file for
each of its states: `<instant>.<action>.requested`, `<instant>.<action>.inflight` and, when it is complete,
`<instant>.<action>`. There are two exceptions: a complete compaction has the action `commit`, and a commit's
second file is `<instant>.inflight`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_COMMITS = ("commit", "deltacommit", "replacecommit")
_OTHERS_THAT_GO = ("clean", "rollback")
_COMPLETED_AS = {"inflight": "commit", "compaction": "commit", "logcompaction": "deltacommit"}


@dataclass(frozen=True)
class TimelineRemoval:
    """The names of the files to remove.

    Remove the `earlier_states` first, in any order. An instant that has them and no completed file would look
    pending. Then remove the `completed` files, each after the one before it is gone. If a reader finds that a
    commit *after* another one is missing, it takes its rows for those of a commit that never completed
    (HUDI-7207)."""

    earlier_states: tuple[str, ...]
    completed: tuple[str, ...]


@dataclass(frozen=True)
class PendingInstants:
    """The instants that have begun and not completed: all that write files, and those that compact."""

    writes: tuple[str, ...] = ()
    compactions: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class _TimelineFile:
    instant: str
    action: str
    is_completed: bool
    name: str


def pending_instants(names: Iterable[str]) -> PendingInstants:
    """Return the pending instants of a timeline with these files, in the order of their names."""
    known = [name for name in names if name[:1].isdigit()]
    files = sorted(filter(None, map(_timeline_file, known)))
    completed = {file.instant for file in _completed(files, *_COMMITS)}
    writes = {file.instant for file in files if file.action in _COMMITS} - completed
    compactions = {name.partition(".")[0] for name in known if ".compaction." in name}
    return PendingInstants(tuple(sorted(writes)), tuple(sorted(writes & compactions)))


def removal_of_oldest_instants(
    names: Iterable[str], remaining: int, stays_from: str | None = None
) -> TimelineRemoval:
    """Return the files of all completed commits, cleanings and rollbacks except the last `remaining` of each.

    `remaining` is at least one. As in Hudi's archival (TimelineArchiverV1), commits stay from the earliest of
    these instants on: `stays_from`, the first savepoint, and the last commit before a pending one. In a
    merge-on-read table, the last commit that is not a compaction also stays, however many compactions have
    followed, because it has the app's commit metadata."""
    files = sorted(filter(None, map(_timeline_file, names)))
    commits = _completed(files, *_COMMITS)
    going = {
        *((file.instant, file.action) for file in commits[:-remaining]),
        *(
            (file.instant, file.action)
            for action in _OTHERS_THAT_GO
            for file in _completed(files, action)[:-remaining]
        ),
    }
    stay_from = _first_that_stays(files, commits, stays_from)
    removed = [
        file
        for file in files
        if (file.instant, file.action) in going
        and (file.action in _OTHERS_THAT_GO or stay_from is None or file.instant < stay_from)
    ]
    return TimelineRemoval(
        earlier_states=tuple(file.name for file in removed if not file.is_completed),
        completed=tuple(file.name for file in removed if file.is_completed),
    )


def _first_that_stays(
    files: Iterable[_TimelineFile], commits: Sequence[_TimelineFile], stays_from: str | None
) -> str | None:
    """Return the instant from which commits stay; None if any commit can be removed."""
    completed = {file.instant for file in commits}
    pending = {file.instant for file in files if file.action in _COMMITS} - completed
    savepoints = {file.instant for file in files if file.action == "savepoint"}
    bounds = savepoints if stays_from is None else savepoints | {stays_from}
    if any(file.action == "deltacommit" for file in commits):
        bounds.add(max(file.instant for file in commits if file.action != "commit"))
    if pending:
        first = min(pending)
        bounds.add(max((instant for instant in completed if instant < first), default=first))
    return min(bounds, default=None)


def _completed(files: Iterable[_TimelineFile], *actions: str) -> list[_TimelineFile]:
    return [file for file in files if file.is_completed and file.action in actions]


def _timeline_file(name: str) -> _TimelineFile | None:
    instant, *states = name.split(".")
    if not instant.isdigit() or not states:
        return None
    action = _COMPLETED_AS.get(states[0], states[0])
    return _TimelineFile(instant, action, states[-1] not in ("requested", "inflight"), name)
