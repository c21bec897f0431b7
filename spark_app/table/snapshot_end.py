"""The end of an online snapshot: the rows that it has not read are gone from the source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.ledger.ledger import AppliedSnapshot, Ledger
from spark_app.merge.by_partition import where_partition
from spark_app.merge.gone_rows import as_deleted, is_gone
from spark_app.reports import Committed
from spark_app.table.batch import Phases
from spark_app.table.quarantine import read_quarantine
from tributary.contract.online_snapshot import Read

if TYPE_CHECKING:
    from spark_app.table.table_ingest import TableIngest


def is_end_due(table: TableIngest, snapshot: Read) -> bool:
    """Return whether to call `end_snapshot` now."""
    return table.state.has_table and is_due(snapshot, table.ledger)


def end_snapshot(table: TableIngest, snapshot: Read) -> Committed:
    """Remove the rows that an online snapshot has shown to be gone, in a commit without events.

    If events of the snapshot are in quarantine, all rows stay, and the ledger says so."""
    phases, before = Phases(), table.ledger
    found = read_quarantine(table.hudi.spark, table.quarantine_path, before.epoch)
    quarantined = count_quarantined(found and found[0], snapshot)
    applied = applied_snapshot(snapshot, quarantined, before.snapshot)
    stored = table.stored()
    gone = stored.where(is_gone(stored, applied, before.epoch))
    ledger = replace(before.next_commit(), snapshot=applied)
    return table.commit_without_events(as_deleted(gone, applied), ledger, phases)


def is_due(snapshot: Read, ledger: Ledger) -> bool:
    """Return whether the table has applied all reads of the snapshot, but has not removed the gone rows yet.

    A snapshot of a topic that was recreated since then is never due: its offsets mean other events now."""
    is_new = ledger.snapshot is None or ledger.snapshot.id != snapshot.request.id
    is_of_this_topic = snapshot.topic_id is None or snapshot.topic_id == ledger.topic_id
    return (
        is_new
        and is_of_this_topic
        and all(ledger.positions.get(partition, 0) >= end for partition, end in snapshot.ended.items())
    )


def applied_snapshot(snapshot: Read, quarantined: int, before: AppliedSnapshot | None) -> AppliedSnapshot:
    """Return what the ledger records about the snapshot's end. `before` is what it has recorded.

    A read that is in quarantine may be of any row. So then no more rows count as gone, and neither do they if
    only a part of the table was read. Rows that an earlier snapshot has shown to be gone stay gone, also in a
    rebuild."""
    request = snapshot.request
    if not quarantined and request.condition is None:
        return AppliedSnapshot(request.id, snapshot.began, request.requested_us)
    earlier = before or AppliedSnapshot(request.id, {}, request.requested_us)
    return replace(earlier, id=request.id, quarantined=quarantined)


def count_quarantined(events: DataFrame | None, snapshot: Read) -> int:
    """Return how many events since the snapshot began are in quarantine (`read_quarantine`)."""
    if events is None:
        return 0
    since = {p: F.col("offset") >= snapshot.began.get(p, 0) for p in snapshot.ended}
    return events.where(where_partition(since)).count()
