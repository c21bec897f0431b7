"""After any process of the whole pipeline is killed at work, the lake ends up equal to the database."""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.faults.operations import COMMIT
from tests.faults.s3_faults import Point
from tests.faults.whole_pipeline import Pipeline, Transactions
from tests.local.landed import wait_until
from tests.soak import SOAKS
from tributary.local import connect, spark
from tributary.local.all_servers import SERVICES_OF_EVERY_LAKE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SEED = int(os.environ.get("TRIBUTARY_SOAK_SEED", "20261"))
SOAK_SECONDS = float(os.environ.get("TRIBUTARY_SOAK_SECONDS", "1200"))
PROCESSES = (*SERVICES_OF_EVERY_LAKE, spark.SERVICE)


@pytest.mark.skipif(not SOAKS, reason="takes a minute a process")
@pytest.mark.parametrize("killed", PROCESSES)
def test_after_any_process_is_killed_the_lake_equals_the_database(at_work: Pipeline, killed: str) -> None:
    transactions = Transactions(at_work.tributary, random.Random(f"{SEED} {killed}"))
    with transactions.running():
        at_work.wait_for_mark()
        at_work.kill(killed)
        with at_work.recovery(f"{killed} killed"):
            at_work.repair()
            at_work.wait_for_mark()
    assert transactions.done > 20
    at_work.check()


@pytest.mark.skipif(not SOAKS, reason="takes three minutes")
def test_a_snapshot_during_which_connect_is_killed_is_taken_again(at_work: Pipeline) -> None:
    tributary, rows = at_work.tributary, 300_000
    at_work.add_table(
        "CREATE TABLE many (id int PRIMARY KEY, name text)",
        f"INSERT INTO many SELECT n, 'name ' || n FROM generate_series(1, {rows}) n",
    )
    before = at_work.events("many")
    with Transactions(tributary, random.Random(SEED)).running():
        starting = tributary.start("up", "--resnapshot", "shop")
        try:
            wait_until(lambda: at_work.events("many") > before, "read of the snapshot")
            at_work.kill(connect.SERVICE)
        finally:
            starting.communicate()
        assert at_work.events("many") - before < rows
        with at_work.recovery("connect killed in a snapshot"):
            at_work.repair()
            at_work.wait_for_mark()
    assert at_work.events("many") - before > rows
    at_work.check()


@pytest.mark.skipif(not SOAKS, reason="takes a minute a process")
@pytest.mark.parametrize("paused", PROCESSES)
def test_after_any_process_is_paused_the_lake_continues_by_itself(at_work: Pipeline, paused: str) -> None:
    with Transactions(at_work.tributary, random.Random(f"{SEED} {paused}")).running():
        at_work.wait_for_mark()
        with at_work.paused(paused):
            time.sleep(60)
        with at_work.recovery(f"{paused} paused for a while"):
            at_work.wait_for_mark()
    at_work.check()


@pytest.mark.skipif(not SOAKS, reason="takes six minutes a point")
@pytest.mark.parametrize("point", COMMIT.points, ids=lambda point: point.name)
def test_after_the_app_is_killed_anywhere_in_a_commit_the_lake_equals_the_database(
    at_work: Pipeline, point: Point
) -> None:
    with Transactions(at_work.tributary, random.Random(f"{SEED} {point.name}")).running():
        at_work.wait_for_mark()
        at_work.faults.stop_at(point, "after")
        assert at_work.faults.is_reached.wait(60)
        at_work.kill(spark.SERVICE)
        at_work.faults.mend()
        with at_work.recovery("spark killed within a commit"):
            at_work.repair()
            at_work.wait_for_mark()
    at_work.check()


@pytest.mark.long
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
        with at_work.recovery("S3 slow, then 503 to every request"):
            at_work.wait_for_mark()
    at_work.check()


@pytest.mark.skipif(not SOAKS, reason="takes TRIBUTARY_SOAK_SECONDS")
@pytest.mark.timeout(0)
def test_after_any_number_of_random_kills_the_lake_equals_the_database(at_work: Pipeline) -> None:
    chance, began = random.Random(SEED), time.monotonic()
    while time.monotonic() < began + SOAK_SECONDS:
        with Transactions(at_work.tributary, chance).running():
            time.sleep(chance.uniform(1, 15))
            process = chance.choice((*SERVICES_OF_EVERY_LAKE, *[spark.SERVICE] * 4))
            at_work.kill(process)
            with at_work.recovery(f"{process} killed"):
                time.sleep(chance.uniform(0, 3))
                at_work.repair()
                at_work.wait_for_mark()
        at_work.check()
