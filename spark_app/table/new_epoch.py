"""Let a table continue at the beginning of a topic that was recreated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_app.ledger.topic_checks import AnotherTopic, check_topic
from spark_app.reports import Committed
from spark_app.sources.event import TopicExtent, positions_text
from spark_app.table.batch import Phases
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    from spark_app.ledger.ledger import Ledger
    from spark_app.table.table_ingest import TableIngest


class NoOtherTopic(TributaryError):
    """The topic is the one that the table has read, so no new epoch can begin."""


def open_epoch(table: TableIngest) -> Committed:
    """Continue at the beginning of the topic that exists now.

    The rows stay. All new events count as later than all earlier ones. Raises `NoOtherTopic` if the table
    has read this very topic, or if there is no table."""
    phases, ledger = Phases(), table.ledger
    extent = table.parts.reader.extent()
    if not table.hudi.exists() or not _is_other_topic(ledger, extent):
        raise NoOtherTopic(
            what="The topic is the one that the table has read: there is no new epoch to open",
            where=f"topic {table.topic}",
            found=f"events up to {positions_text(extent.end)}",
        )
    nothing = table.stored().where(F.lit(False))
    return table.commit_without_events(nothing, ledger.next_epoch(extent.topic_id), phases)


def _is_other_topic(ledger: Ledger, extent: TopicExtent) -> bool:
    try:
        check_topic(ledger, extent)
    except AnotherTopic:
        return True
    return False
