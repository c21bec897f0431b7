"""An app that was paused and resumes after another app has taken over damages no table."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest
from pyspark.sql import SparkSession

from spark_app.sources.passing_failures import PASSING_FAILURES
from tests.faults.injected import Injected
from tests.faults.lake_on_s3 import LakeTable, Storage
from tests.faults.operations import COMMIT
from tests.faults.s3_faults import Moment, Point
from tests.soak import SOAKS

LOOK = Point("the look at the table", "GET", r"/\.hoodie/hoodie\.properties")
"""The read right before the timeline is listed. The listing shows an app whether it is alone."""

PAUSES: tuple[tuple[Point, Moment], ...] = (
    (LOOK, "after"),
    *((point, "before") for point in COMMIT.points[:3]),
    (COMMIT.points[-1], "after"),
)
"""The pauses to test. None is within a PUT of rows or of the commit, because S3 accepts a late PUT."""


@pytest.mark.parametrize(
    ("point", "moment"),
    PAUSES if SOAKS else [PAUSES[3], pytest.param(*PAUSES[1], marks=pytest.mark.long)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_paused_app_that_resumes_after_another_has_taken_over_damages_nothing(
    spark: SparkSession, s3: Storage, injected: list[Injected], point: Point, moment: Moment
) -> None:
    paused = LakeTable(spark, s3, f"paused-{moment}-{point.name.replace(' ', '-')}")
    COMMIT.prepare(paused)
    other = LakeTable(spark, s3, paused.name, paused.policy, paused.source)
    s3.faults.hold_at(point, moment)

    def go_on() -> None:
        with suppress(*PASSING_FAILURES):
            paused.catch_up()

    thread = threading.Thread(target=go_on, name="paused app")
    thread.start()
    try:
        assert s3.faults.is_reached.wait(60), f"{point.name} was never reached"
        began = time.monotonic()
        other.catch_up()
        seconds = time.monotonic() - began
        other.transact(lambda source: source.delete(3), lambda source: source.insert(4, "back", None))
        other.catch_up()
        other.ingest.serve()
    finally:
        s3.faults.mend()
        thread.join()
    other.transact(lambda source: source.insert(5, "at last", None))
    for _ in range(2):
        # If it found that it was not alone, the next attempt starts from what the table holds.
        with suppress(*PASSING_FAILURES):
            other.catch_up()
            break
        other.end_process()
    injected.append(Injected("app paused within a commit, another took over", seconds, other.harm()))
    other.check()
