"""Rows that are inserted while a table has no primary key go to quarantine, and a snapshot brings them."""

from __future__ import annotations

import psycopg
import pytest

from tests.faults.whole_pipeline import Pipeline

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def test_rows_written_without_a_primary_key_are_set_aside_and_arrive_with_a_snapshot(
    at_work: Pipeline,
) -> None:
    tributary = at_work.tributary
    at_work.add_table(
        "CREATE TABLE parcels (id int PRIMARY KEY, name text)", "INSERT INTO parcels VALUES (1, 'before')"
    )
    with tributary.connect() as database:
        database.execute("ALTER TABLE parcels DROP CONSTRAINT parcels_pkey")
        database.execute("INSERT INTO parcels VALUES (2, 'without a key')")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            database.execute("UPDATE parcels SET name = 'refused' WHERE id = 1")
        at_work.wait_for_mark()
        assert "parcels" in tributary.run("up", status=3)
        (set_aside,) = at_work.wait_for_quarantine()
        assert (set_aside["table"], set_aside["reason"]) == ("shop.public.parcels", "missing_key")
        at_work.quarantined += 1

        database.execute("ALTER TABLE parcels ADD PRIMARY KEY (id)")
        with at_work.recovery("primary key dropped"):
            database.execute("UPDATE parcels SET name = 'again' WHERE id = 1")
            tributary.run("up", "--resnapshot", "shop")
            at_work.wait_for_mark()
    at_work.check()
