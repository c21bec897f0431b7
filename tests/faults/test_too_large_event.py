"""A row too large for Kafka stops its source with a clear error. It arrives after the limit is raised."""

from __future__ import annotations

import pytest

from tests.faults.whole_pipeline import LAKE, Pipeline

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def test_a_row_too_large_for_kafka_is_reported_and_arrives_after_the_limit_is_raised(
    at_work: Pipeline,
) -> None:
    tributary = at_work.tributary
    at_work.add_table(
        "CREATE TABLE scans (id int PRIMARY KEY, image text)", "INSERT INTO scans VALUES (1, 'small')"
    )
    with tributary.connect() as database:
        database.execute("INSERT INTO scans VALUES (2, repeat('large', 4000000)), (3, 'small')")
    at_work.wait_for_failure("[lake].max_event_mb")

    tributary.lake_file.write_text(LAKE.replace('name = "faults"', 'name = "faults"\nmax_event_mb = 24'))
    with at_work.recovery("event too large for Kafka"):
        at_work.repair()
        at_work.wait_for_mark()
    at_work.check()
