"""The loss of a replication slot is reported, and a new snapshot makes the lake equal the database again."""

from __future__ import annotations

import pytest

from connectors.engines.postgres.names import replication_slot
from connectors.engines.postgres.slot import drop_slot
from tests.faults.whole_pipeline import Pipeline
from tests.postgres_source import postgres_source
from tributary.local import connect

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def test_a_dropped_slot_is_reported_and_a_new_snapshot_repairs_the_lake(at_work: Pipeline) -> None:
    tributary = at_work.tributary
    lake = tributary.workspace.lake
    at_work.add_table(
        "CREATE TABLE owners (id int PRIMARY KEY, name text)",
        "INSERT INTO owners SELECT n, 'first' FROM generate_series(1, 5) n",
    )

    at_work.kill(connect.SERVICE)
    with tributary.connect() as database:
        drop_slot(database, replication_slot(lake, postgres_source(lake)))
        database.execute("DELETE FROM owners WHERE id = 2")
        database.execute("UPDATE owners SET name = 'unseen' WHERE id = 3")
    told = tributary.run("up", status=1)
    assert "no longer available on the server" in told
    assert "docs/operate.md" in told

    with at_work.recovery("replication slot dropped"):
        tributary.run("up", "--resnapshot", "shop")
        at_work.wait_for_mark()
    wrong = tributary.json("reconcile", "--wait", "600", status=1)
    assert {table["table"] for table in wrong["tables"] if not table["identical"]} == {"shop.public.owners"}

    at_work.end_ingest()
    tributary.run("rebuild", "owners", "--from", "kafka", "--since-snapshot")
    at_work.follow()
    at_work.check()
