"""An instant of Hudi is parsed from its text or refused, but never overlooked."""

from __future__ import annotations

import pytest

from spark_app.hudi.instants import CompletedInstant, UnknownInstant, parse_completed_instants
from spark_app.hudi.timeline import Timeline

FIRST = "[20261122101500123__20261122101509000__deltacommit__COMPLETED]"
COMPACTION = "[20261122101501123__20261122101505000__commit__COMPLETED]"
LAST = "[20261122101503123__20261122101505000__deltacommit__COMPLETED]"


def test_instants_are_in_the_order_of_their_completion() -> None:
    instants = parse_completed_instants([FIRST, COMPACTION, LAST])
    assert instants[0] == CompletedInstant("20261122101509000", "20261122101500123", "deltacommit")
    assert sorted(instants) == [instants[1], instants[2], instants[0]]


@pytest.mark.parametrize(
    "text",
    [
        "[==>20261122101500123__deltacommit__INFLIGHT]",
        "[20261122101500123__deltacommit__COMPLETED]",
        "20261122101500123",
        "",
    ],
)
def test_a_text_that_is_no_completed_instants_is_refused(text: str) -> None:
    with pytest.raises(UnknownInstant, match="form that is not known"):
        parse_completed_instants([FIRST, text])


def test_a_compaction_is_a_commit_of_a_copy_on_write_table_only() -> None:
    instants = parse_completed_instants([FIRST, COMPACTION, LAST])
    merge_on_read = Timeline("merge_on_read", instants)
    assert merge_on_read.requested == {FIRST[1:18], LAST[1:18]}
    assert merge_on_read.last_instant == LAST[1:18]
    assert merge_on_read.commits_since_services == 1
    assert Timeline("copy_on_write", instants).requested == {FIRST[1:18], COMPACTION[1:18], LAST[1:18]}
    assert Timeline("merge_on_read").last_instant is None
