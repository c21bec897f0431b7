"""What Kinesis and DynamoDB charge for a load."""

from __future__ import annotations

import pytest

from stacks.transport_cost import Load, change_capture, on_demand_stream, provisioned_stream, shards


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Load(0, 700), 1),
        (Load(700, 700), 1),
        (Load(701, 700), 2),
        (Load(100, 10_000), 2),
        (Load(10_000, 700), 15),
    ],
)
def test_a_stream_has_shards_for_the_records_or_for_their_bytes(load: Load, expected: int) -> None:
    assert shards(load) == expected


def test_each_service_rounds_a_record_up_in_its_own_way() -> None:
    small, large = Load(1_000_000, 1_000), Load(1_000_000, 1_025)
    assert change_capture(large) == pytest.approx(2 * change_capture(small))
    assert change_capture(small) == pytest.approx(3_600 * 0.10)
    gigabytes = 3.6e9 * 1024 / 2**30
    assert on_demand_stream(small) == pytest.approx(0.04 + gigabytes * (0.08 + 0.04 * 1_000 / 1_024))
    put_units = provisioned_stream(large) - shards(large) * 0.015
    assert put_units == pytest.approx(3_600 * 0.014)


def test_an_idle_stream_costs_its_hours_alone() -> None:
    idle = Load(0, 700)
    assert (on_demand_stream(idle), provisioned_stream(idle), change_capture(idle)) == (0.04, 0.015, 0)
