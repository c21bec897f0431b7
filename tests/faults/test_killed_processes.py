"""Whichever process of the whole pipeline is killed at work, the lake equals the database in the end."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from statistics import median

import pytest

from local import connect, spark
from local.pipeline import SERVICES
from tests.faults.operations import COMMIT
from tests.faults.s3_faults import Point
from tests.faults.whole_pipeline import Pipeline, Transactions
from tests.soak import SOAKS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SEED = int(os.environ.get("TRIBUTARY_SOAK_SEED", "20261"))
SOAK_SECONDS = float(os.environ.get("TRIBUTARY_SOAK_SECONDS", "1200"))
PROCESSES = (*SERVICES, spark.SERVICE)


@pytest.mark.parametrize("killed", PROCESSES if SOAKS else [connect.SERVICE, spark.SERVICE])
def test_whichever_process_is_killed_the_lake_equals_the_database(at_work: Pipeline, killed: str) -> None:
    transactions = Transactions(at_work.tributary, random.Random(f"{SEED} {killed}"))
    with transactions.running():
        at_work.wait_for_mark()
        at_work.kill(killed)
        at_work.repair()
        at_work.wait_for_mark()
    assert transactions.done > 20
    at_work.check()


@pytest.mark.parametrize(
    "point", COMMIT.points if SOAKS else COMMIT.points[-1:], ids=lambda point: point.name
)
def test_wherever_in_a_commit_the_app_is_killed_the_lake_equals_the_database(
    at_work: Pipeline, point: Point
) -> None:
    with Transactions(at_work.tributary, random.Random(f"{SEED} {point.name}")).running():
        at_work.wait_for_mark()
        at_work.faults.stop_at(point, "after")
        assert at_work.faults.is_reached.wait(60)
        at_work.kill(spark.SERVICE)
        at_work.faults.mend()
        at_work.repair()
        at_work.wait_for_mark()
    at_work.check()


def test_an_s3_that_is_slow_then_refuses_everything_then_answers_again_loses_nothing(
    at_work: Pipeline,
) -> None:
    seconds = 60.0 if SOAKS else 5.0
    with Transactions(at_work.tributary, random.Random(SEED)).running():
        at_work.wait_for_mark()
        at_work.faults.delay_seconds = 0.2
        time.sleep(seconds)
        at_work.faults.refuses = lambda _: True
        time.sleep(seconds)
        assert at_work.faults.refused > 0
        at_work.faults.mend()
        at_work.wait_for_mark()
    at_work.check()


@pytest.mark.skipif(not SOAKS, reason="takes TRIBUTARY_SOAK_SECONDS")
@pytest.mark.timeout(0)
def test_after_any_number_of_random_kills_the_lake_equals_the_database(
    at_work: Pipeline, record_property: Callable[[str, object], None]
) -> None:
    chance, began = random.Random(SEED), time.monotonic()
    killed: list[tuple[str, float]] = []
    transactions = 0
    while time.monotonic() < began + SOAK_SECONDS:
        work = Transactions(at_work.tributary, chance)
        with work.running():
            time.sleep(chance.uniform(1, 15))
            process = chance.choice((*SERVICES, *[spark.SERVICE] * 4))
            at_work.kill(process)
            time.sleep(chance.uniform(0, 3))
            at_work.repair()
            killed.append((process, at_work.wait_for_mark()))
            print(f"{process}: in the lake again after {killed[-1][1]:.1f} s", flush=True)
        transactions += work.done
        at_work.check()
    record_property("killed", killed)
    print(f"{transactions} transactions; after each kill the lake was the database, row by row")
    for process in sorted({process for process, _ in killed}):
        seconds = [taken for killed_one, taken in killed if killed_one == process]
        print(f"{process}: {len(seconds)} times, p50 {median(seconds):.1f} s, longest {max(seconds):.1f} s")
