"""While shards split and merge, processes die and records come late and twice, the lake follows the items."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest

from tests.faults.items_at_work import Changes, ItemsAtWork, items_at_work
from tests.soak import SOAKS
from tributary.local import kinesis, s3, spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(0)]

SEED = int(os.environ.get("TRIBUTARY_SOAK_SEED", "20261"))
SOAK_SECONDS = float(os.environ.get("TRIBUTARY_SOAK_SECONDS", "1200"))
CHANGES_PER_SECOND = 4.0
SECONDS_BETWEEN_CHECKS = 300.0


@pytest.fixture
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ItemsAtWork]:
    with items_at_work(tmp_path_factory.mktemp("items")) as running:
        yield running


@pytest.mark.skipif(not SOAKS, reason="takes TRIBUTARY_SOAK_SECONDS")
def test_no_item_is_lost_doubled_or_gone_back_in_time(pipeline: ItemsAtWork) -> None:
    chance, began = random.Random(SEED), time.monotonic()
    changes = Changes(pipeline, random.Random(SEED + 1), CHANGES_PER_SECOND)
    deadline = began + SOAK_SECONDS
    while time.monotonic() < deadline:
        check_at = min(deadline, time.monotonic() + SECONDS_BETWEEN_CHECKS)
        with changes.running():
            while time.monotonic() < check_at:
                time.sleep(min(chance.uniform(5, 45), max(0.0, check_at - time.monotonic())))
                _harm(pipeline, chance)
        pipeline.check()
        print(f"{time.monotonic() - began:.0f} s: {pipeline.summary(changes.done)}", flush=True)
    assert min(pipeline.splits, pipeline.merges, pipeline.kills[spark.SERVICE]) > 0
    pipeline.check_records()


def _harm(pipeline: ItemsAtWork, chance: random.Random) -> None:
    """Do one of the things that the lake has to bear."""
    match chance.choices(("reshard", "kill the app", "kill S3", "pause Kinesis"), (40, 40, 8, 12))[0]:
        case "reshard":
            pipeline.reshard(chance)
        case "kill the app":
            pipeline.kill(spark.SERVICE)
            if chance.random() < 0.75:  # Otherwise, the next harm may meet an app that has committed nothing.
                pipeline.wait_for_commit()
        case "kill S3":
            pipeline.kill(s3.SERVICE)
        case "pause Kinesis":
            with pipeline.paused(kinesis.SERVICE):
                time.sleep(chance.uniform(1, 15))
