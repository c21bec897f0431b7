"""Wait until Kafka holds all that the sources of a lake have committed, for example until a snapshot ends."""

from __future__ import annotations

from collections.abc import Callable

from tributary.contract.remedies import BringUp, CheckStatus
from tributary.operations.kafka_topics import read_table_topics, read_topic_ends
from tributary.operations.reconcile.barrier import LakeBehind, Patience, wait_for_connector
from tributary.operations.snapshots.keeper import SnapshotKeeper, is_unread, notice_changes
from tributary.operations.source_links import source_links
from tributary.operations.sourced_lake import passing_errors
from tributary.operations.workspace import Workspace


class KafkaBehind(LakeBehind):
    """Kafka does not hold yet all that a source has committed."""


def wait_until_kafka_holds_all(workspace: Workspace, patience: Patience) -> None:
    """Return when Kafka holds all that was committed in every source before the call.

    Raises `KafkaBehind` after the deadline, `PipelineDown`, and `DatabaseUnreachable`.
    """
    for link in source_links(workspace):
        try:
            with link.connect() as session:
                wait_for_connector(link.steps_to_kafka(session), patience)
        except LakeBehind as error:
            raise KafkaBehind(
                f"Kafka does not hold all rows of source {link.source.name} yet: gave up waiting",
                found=f"{error.found}; {_events(workspace):,} events are in Kafka",
                remedy=[
                    "If its first snapshot still runs, wait longer with --wait, or follow it with --follow. "
                    "With --wait 0, the command takes what is in Kafka now.",
                    CheckStatus(),
                    BringUp(),
                ],
            ) from error


def wait_until_tables_are_read(workspace: Workspace, patience: Patience, tell: Callable[[str], None]) -> None:
    """Return when the connectors have read all tables that have to be read again (`SnapshotKeeper`).

    Raises `LakeBehind` after the deadline, and the errors of `SnapshotKeeper.step`."""
    notice_changes(workspace, tell)
    keeper = SnapshotKeeper(workspace, tell, patience.stop)

    def lacking() -> str | None:
        unread = [str(table) for table, record in keeper.step().items() if is_unread(record)]
        return f"{', '.join(sorted(unread))} must be read again" if unread else None

    patience.wait("the connectors", lacking, CheckStatus())


def has_looked(workspace: Workspace, tell: Callable[[str], None]) -> bool:
    """Look at the catalogs of all sources once. Return whether that was possible (`notice_changes`)."""
    try:
        notice_changes(workspace, tell)
    except passing_errors(workspace) as error:
        tell(f"The tables' definitions cannot be checked now: {error}")
        return False
    return True


def _events(workspace: Workspace) -> int:
    kafka = workspace.kafka
    topics = read_table_topics(kafka, workspace.lake).keys()
    return sum(sum(ends.values()) for ends in read_topic_ends(kafka, topics).values())
