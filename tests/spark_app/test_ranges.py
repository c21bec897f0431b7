"""The next ranges hold every event, in order, never twice, and not too many at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_app.sources.event import TopicExtent, ranges_from

EXTENTS = st.dictionaries(
    st.integers(0, 5), st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=4
).map(
    lambda found: TopicExtent(
        beginning={p: begin for p, (begin, _) in found.items()},
        end={p: begin + length for p, (begin, length) in found.items()},
    )
)


@given(EXTENTS, st.integers(4, 60))
def test_reading_range_after_range_reads_every_offset_once_and_ends(extent: TopicExtent, limit: int) -> None:
    positions: dict[int, int] = {}
    read: list[tuple[int, int]] = []

    while ranges := ranges_from(positions, extent, limit):
        assert 0 < sum(r.length for r in ranges) <= limit
        for r in ranges:
            read.extend((r.partition, offset) for offset in range(r.first, r.until))
            positions[r.partition] = r.until

    assert sorted(read) == sorted(
        (partition, offset)
        for partition, begin in extent.beginning.items()
        for offset in range(begin, extent.end[partition])
    )


@given(EXTENTS, st.integers(4, 60))
def test_no_partition_waits_for_another_to_be_read_up(extent: TopicExtent, limit: int) -> None:
    behind = {partition for partition, end in extent.end.items() if end > extent.beginning[partition]}

    assert {r.partition for r in ranges_from({}, extent, limit)} == behind
