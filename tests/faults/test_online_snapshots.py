"""Changes without an event reach the lake by themselves, even if any part is killed meanwhile."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.faults.whole_pipeline import Pipeline, Transactions
from tests.local.landed import wait_until
from tests.soak import SOAKS
from tributary.local import connect, spark
from tributary.operations.snapshots.keeper import record_files
from tributary.operations.table_lag import read_lags

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

ROWS = 30_000
TABLES = (
    "CREATE TABLE large (id int PRIMARY KEY, v text, w text)",
    f"INSERT INTO large SELECT g, 'x', 'y' FROM generate_series(1, {ROWS}) g",
    "CREATE TABLE parted (id int, y int, v text, PRIMARY KEY (id, y)) PARTITION BY RANGE (y)",
    "CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (2)",
    "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (2) TO (3)",
    "INSERT INTO parted SELECT g, 1 + g % 2, 'v' FROM generate_series(1, 100) g",
    "CREATE TABLE swapped (id int PRIMARY KEY, v text)",
    "INSERT INTO swapped VALUES (1, 'old'), (2, 'old'), (3, 'old')",
    # Before it is renamed, Debezium has to meet it under its own name, or it finds no key.
    "CREATE TABLE swapped_next (id int PRIMARY KEY, v text)",
    "INSERT INTO swapped_next SELECT id, 'new' FROM swapped WHERE id < 3",
    'CREATE TABLE "Odd(Name)" (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), v text)',
    'INSERT INTO "Odd(Name)" (v) SELECT g FROM generate_series(1, 10) g',
)
SILENT = (
    "ALTER TABLE large RENAME v TO renamed",
    "ALTER TABLE large ADD COLUMN c text DEFAULT 'filled'",
    "CREATE TABLE loaded (id int, y int, v text, PRIMARY KEY (id, y))",
    "INSERT INTO loaded VALUES (1000, 3, 'loaded before it was attached')",
    "ALTER TABLE parted DETACH PARTITION parted_1",
    "ALTER TABLE parted ATTACH PARTITION loaded FOR VALUES FROM (3) TO (4)",
    "ALTER TABLE swapped RENAME TO swapped_old",
    "ALTER TABLE swapped_next RENAME TO swapped",
    "INSERT INTO swapped VALUES (4, 'new')",
    'ALTER TABLE "Odd(Name)" ADD COLUMN filled int DEFAULT 7',
)


@pytest.mark.skipif(not SOAKS, reason="takes six minutes")
def test_a_lake_equals_its_database_after_silent_changes_although_readers_are_killed(
    at_work: Pipeline,
) -> None:
    tributary = at_work.tributary
    at_work.add_table(*TABLES)
    _run(at_work, *SILENT)
    told = {one["table"]: " ".join(one["reasons"]) for one in tributary.json("up")["read_again"]}
    assert "v is called renamed now" in told["shop.public.large"]
    assert "another table has this name now" in told["shop.public.swapped"]
    assert "parted_1 was detached" in told["shop.public.parted"]
    with Transactions(tributary, random.Random(1)).running():
        reading = tributary.start("snapshot")
        try:
            _wait(lambda: at_work.events("large") > ROWS, "first rows that are read again")
            at_work.kill(connect.SERVICE)
            at_work.kill(spark.SERVICE)
            at_work.repair()
            # Nobody takes the snapshots further but another command.
            reading.kill()
            reading.communicate()
            tributary.run("snapshot")
        finally:
            reading.kill()
    _run(at_work, "UPDATE large SET w = 'z' WHERE id % 1000 = 0", "DELETE FROM large WHERE id % 999 = 0")
    _wait_until_all_are_applied(at_work)
    at_work.check()
    states = {one["table"]: one["state"] for one in tributary.json("status")["tables"]}
    assert states["shop.public.loaded"] == "orphan"
    assert states["shop.public.large"] == "well"


BEFORE_A_SWAP = (
    "CREATE TABLE leaves (id int, y int, v text, PRIMARY KEY (id, y)) PARTITION BY RANGE (y)",
    *(f"CREATE TABLE leaf_{y} PARTITION OF leaves FOR VALUES FROM ({y}) TO ({y + 1})" for y in (1, 2, 3)),
    "INSERT INTO leaves SELECT y, y, 'year ' || y FROM generate_series(1, 3) y",
    "CREATE TABLE blue (id int PRIMARY KEY, v text)",
    "INSERT INTO blue VALUES (1, 'old'), (2, 'old'), (3, 'old')",
    "CREATE TABLE green (id int PRIMARY KEY, v text)",
    "INSERT INTO green VALUES (1, 'new'), (2, 'new')",
    "CREATE TABLE again (id int PRIMARY KEY, v text)",
    "INSERT INTO again VALUES (1, 'first life'), (2, 'first life')",
)
SWAP = (
    "ALTER TABLE leaves DETACH PARTITION leaf_1",
    "TRUNCATE leaf_2",
    "CREATE TABLE leaf_4 (id int, y int, v text, PRIMARY KEY (id, y))",
    "INSERT INTO leaf_4 VALUES (4, 4, 'from before')",
    "ALTER TABLE leaves ATTACH PARTITION leaf_4 FOR VALUES FROM (4) TO (5)",
    "BEGIN; ALTER TABLE blue RENAME TO former_blue; ALTER TABLE green RENAME TO blue; COMMIT",
    "INSERT INTO blue VALUES (4, 'new')",
    "DROP TABLE again",
    "CREATE TABLE again (id int PRIMARY KEY, v text)",
    "INSERT INTO again VALUES (2, 'second life'), (3, 'second life')",
)
LEAVES_AFTER = {3: "year 3", 4: "from before"}
BLUE_AFTER = {1: "new", 2: "new", 4: "new"}
AGAIN_AFTER = {2: "second life", 3: "second life"}


def test_an_ingest_that_follows_notices_by_itself_and_a_person_decides_about_a_manual_table(
    at_work: Pipeline,
) -> None:
    tributary = at_work.tributary
    at_work.add_table(
        *BEFORE_A_SWAP,
        "CREATE TABLE automatic (id int PRIMARY KEY)",
        "INSERT INTO automatic VALUES (1), (2)",
        "CREATE TABLE manual (id int PRIMARY KEY)",
        "INSERT INTO manual VALUES (1), (2)",
    )
    lake_file = tributary.lake_file.read_text()
    tributary.lake_file.write_text(f'{lake_file}\n[table."shop.public.manual"]\nrepair = "manual"\n')
    # A mark is no proof: it is in another table.
    new = {"automatic", "manual", "leaves", "blue", "green", "again"}
    _wait(lambda: new <= _in_lake(at_work), "new tables in the lake")
    at_work.end_ingest()
    try:
        with _following(at_work):
            _run(at_work, *(f"ALTER TABLE {t} ADD COLUMN c int DEFAULT 5" for t in ("automatic", "manual")))
            _wait(lambda: _state(at_work, "manual") == "differs", "notice of the silent change")
            _wait(lambda: _fives(at_work, "automatic") == 2, "rows with the column's default")
            assert _fives(at_work, "manual") == 0
            _run(at_work, *SWAP)
            _wait(lambda: _values(at_work, "leaves") == LEAVES_AFTER, "rows of the partitions that are there")
            _wait(lambda: _values(at_work, "blue") == BLUE_AFTER, "rows of the table with this name")
            _wait(lambda: _values(at_work, "again") == AGAIN_AFTER, "rows of the table's second life")
            assert "tributary snapshot" in tributary.run("status", status=1)
            tributary.run("snapshot", "manual")
            _wait(lambda: _fives(at_work, "manual") == 2, "rows with the column's default")
            _wait(lambda: _state(at_work, "manual") == "well", "state of a table that is equal again")
            # The table's former self is a table of its own.
            _wait(lambda: "former_blue" in _in_lake_with_rows(at_work), "the table with a new name")
            # So is the detached partition, which the connector was told not to read when it was one.
            _wait(lambda: "leaf_1" in _in_lake_with_rows(at_work), "the table that was a partition")
            _run(at_work, "INSERT INTO leaf_1 VALUES (10, 1, 'later')")
            _wait(lambda: _values(at_work, "leaf_1") == {1: "year 1", 10: "later"}, "its later rows")
            _wait_until_all_are_applied(at_work)
    finally:
        tributary.lake_file.write_text(lake_file)
        at_work.follow()
    at_work.check()


LOSSY = (
    "CREATE TABLE lossy (k varbit PRIMARY KEY, v text)",
    "INSERT INTO lossy VALUES (B'1', 'one'), (B'01', 'two'), (B'001', 'three')",
    "CREATE TABLE exact (id int PRIMARY KEY, v text)",
    "INSERT INTO exact VALUES (1, 'one')",
)
MENDED = (
    "ALTER TABLE lossy DROP CONSTRAINT lossy_pkey",
    "ALTER TABLE lossy ALTER k TYPE text",
    "ALTER TABLE lossy ADD PRIMARY KEY (k)",
)


def test_a_table_that_is_created_later_and_cannot_be_exact_comes_in_once_it_is_mended(
    at_work: Pipeline,
) -> None:
    tributary = at_work.tributary
    at_work.end_ingest()
    try:
        with _following(at_work):
            _run(
                at_work, *LOSSY, "CREATE TABLE quiet (id int, v text)", "INSERT INTO quiet VALUES (1, 'only')"
            )
            _wait(lambda: "exact" in _in_lake(at_work), "the other new table in the lake")
            assert _state(at_work, "lossy") == "left out"
            said = " ".join(tributary.run("status", status=1).split())
            assert "sends two values as the same" in said
            assert "as key, or leave the table out with the pattern" in said
            listed = _listed(at_work, "lossy")
            assert listed["state"] == "left out"
            assert "rows" not in listed, "the lake has no such table"
            _run(at_work, *MENDED, "INSERT INTO lossy VALUES ('0001', 'four')")
            _wait(lambda: "rows" in _listed(at_work, "lossy"), "the mended table in the lake")
            _wait(lambda: _state(at_work, "lossy") == "well", "the end of its snapshot")
            # No change of a row tells the connector of the key.
            assert _state(at_work, "quiet") == "left out"
            _run(at_work, "ALTER TABLE quiet ADD PRIMARY KEY (id)")
            _wait(lambda: _state(at_work, "quiet") == "well", "the quiet table's snapshot")
            assert _values(at_work, "quiet") == {1: "only"}
        assert tributary.json("query", "SELECT k, v FROM lossy ORDER BY v") == [
            {"k": "0001", "v": "four"},
            {"k": "1", "v": "one"},
            {"k": "001", "v": "three"},
            {"k": "01", "v": "two"},
        ]
    finally:
        at_work.follow()
    at_work.check()


def test_a_table_that_a_start_left_out_comes_in_once_it_is_mended(at_work: Pipeline) -> None:
    tributary = at_work.tributary
    at_work.end_ingest()
    _run(
        at_work,
        "CREATE TABLE keyless (id int, v text)",
        "INSERT INTO keyless VALUES (1, 'from before')",
    )
    try:
        (left_out,) = tributary.json("up", status=3)["left_out"]
        assert left_out["table"] == "shop.public.keyless"
        with _following(at_work):
            assert _state(at_work, "keyless") == "left out"
            _run(
                at_work, "ALTER TABLE keyless ADD PRIMARY KEY (id)", "INSERT INTO keyless VALUES (2, 'then')"
            )
            _wait(lambda: "keyless" in _in_lake_with_rows(at_work), "the mended table in the lake")
            _run(at_work, "INSERT INTO keyless VALUES (3, 'later')")
            rows = {1: "from before", 2: "then", 3: "later"}
            _wait(lambda: _values(at_work, "keyless") == rows, "its later rows")
            _wait(lambda: _state(at_work, "keyless") == "well", "the end of its snapshot")
    finally:
        at_work.follow()
    at_work.check()


def _values(at_work: Pipeline, table: str) -> dict[int, str]:
    rows = at_work.tributary.json("query", f"SELECT id, v FROM {table}")
    return {row["id"]: row["v"] for row in rows}


def _listed(at_work: Pipeline, table: str) -> dict[str, Any]:
    found = {one["table"]: one for one in at_work.tributary.json("tables")}
    return dict(found.get(f"shop.public.{table}", {}))


def _run(at_work: Pipeline, *statements: str) -> None:
    with at_work.tributary.connect() as database:
        for statement in statements:
            database.execute(statement.encode())


@contextmanager
def _following(at_work: Pipeline) -> Iterator[None]:
    process = at_work.tributary.start("ingest", "--follow")
    try:
        yield
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def _wait_until_all_are_applied(at_work: Pipeline) -> None:
    # In this process: a command takes a core for two seconds.
    workspace = at_work.tributary.workspace
    files = record_files(workspace)

    def is_all_applied() -> bool:
        applied = {lag.snapshot for lag in read_lags(workspace)}
        return all(record.request.id in applied for record in files.read().values())

    _wait(is_all_applied, "end of all snapshots")


def _in_lake(at_work: Pipeline) -> set[str]:
    return {one["table"].rpartition(".")[2] for one in at_work.tributary.json("tables")}


def _in_lake_with_rows(at_work: Pipeline) -> set[str]:
    return {one["table"].rpartition(".")[2] for one in at_work.tributary.json("tables") if one.get("rows")}


def _state(at_work: Pipeline, table: str) -> str:
    found = {one["table"]: one["state"] for one in at_work.tributary.json("status", status=None)["tables"]}
    return str(found[f"shop.public.{table}"])


def _fives(at_work: Pipeline, table: str) -> int:
    (row,) = at_work.tributary.json("query", f"SELECT count(*) AS n FROM {table} WHERE id < 3")
    assert row["n"] == 2
    columns = at_work.tributary.json("query", f"SELECT * FROM {table}")
    return sum(one.get("c") == 5 for one in columns)


def _wait(is_there: Callable[[], bool], what: str) -> None:
    # A command takes a core for two seconds.
    wait_until(is_there, what, poll_seconds=3)
