"""What changes rows of a PostgreSQL table without an event is noticed in its catalog, and nothing else."""

from __future__ import annotations

import psycopg
import pytest

from connectors.engines.definitions import TableDefinition, silent_changes
from connectors.engines.postgres.definitions import has_rows, read_definitions
from connectors.engines.postgres.names import publication, replication_user
from connectors.engines.postgres.preparation import apply_postgres_setup
from tests.connectors.test_postgres_setup import PASSWORD, drop_role, lake_of
from tests.postgres_source import postgres_source
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName

pytestmark = pytest.mark.slow

TABLES = """
CREATE TYPE state AS ENUM ('open', 'shut');
CREATE TABLE plain (id int PRIMARY KEY, v text, n int, s state, many state[]);
INSERT INTO plain SELECT g, 'x', g, 'open' FROM generate_series(1, 5) g;
CREATE TABLE root (id int, y int, v text, PRIMARY KEY (id, y)) PARTITION BY RANGE (y);
CREATE TABLE root_1 PARTITION OF root FOR VALUES FROM (1) TO (2);
CREATE TABLE root_2 PARTITION OF root FOR VALUES FROM (2) TO (3);
INSERT INTO root VALUES (1, 1, 'one'), (2, 2, 'two');
CREATE SCHEMA stage;
CREATE TABLE stage.loaded (id int, y int, v text, PRIMARY KEY (id, y));
INSERT INTO stage.loaded VALUES (3, 3, 'loaded'), (4, 3, 'loaded');
"""
SILENT = {
    "ALTER TABLE plain ADD COLUMN c text DEFAULT 'UK'": "c was added with a value",
    "ALTER TABLE plain ADD COLUMN c uuid DEFAULT gen_random_uuid()": "all rows were written again",
    "ALTER TABLE plain ADD COLUMN c int GENERATED ALWAYS AS (n + 1) STORED": "all rows were written again",
    "ALTER TABLE plain RENAME v TO w": "v is called w now",
    "ALTER TABLE plain ALTER n TYPE bigint": "all rows were written again",
    "ALTER TABLE plain ALTER n TYPE int USING n * 2": "all rows were written again",
    "ALTER TYPE state RENAME VALUE 'open' TO 'opened'": "the value open of s is called opened now",
    "DROP TABLE plain; CREATE TABLE plain (id int PRIMARY KEY, v text, n int)": "another table has this name",
    "CREATE TABLE n (id int PRIMARY KEY); ALTER TABLE plain RENAME TO o; ALTER TABLE n RENAME TO plain": (
        "another table has this name"
    ),
    "ALTER TABLE root ADD COLUMN c int DEFAULT 5": "c was added with a value",
    "ALTER TABLE root ALTER v TYPE varchar(9)": "all rows were written again",
    "ALTER TABLE root DETACH PARTITION root_1": r"root_1 was detached or dropped",
    "DROP TABLE root_1": r"root_1 was detached or dropped",
    "TRUNCATE root_1": r"root_1 was truncated",
    "TRUNCATE root_1; INSERT INTO root VALUES (5, 1, 'five')": r"root_1 was truncated",
    "ALTER TABLE root ATTACH PARTITION stage.loaded FOR VALUES FROM (3) TO (4)": "loaded came with rows",
    "CREATE TABLE new AS SELECT 5 AS id, 5 AS y, 'new' AS v; ALTER TABLE new ALTER id SET NOT NULL, "
    "ALTER y SET NOT NULL; ALTER TABLE root ATTACH PARTITION new FOR VALUES FROM (5) TO (6)": (
        "new came with rows"
    ),
}
HARMLESS = (
    "UPDATE plain SET v = 'y'; DELETE FROM plain WHERE id = 1",
    "TRUNCATE plain",
    "ALTER TYPE state ADD VALUE 'new'; UPDATE plain SET s = 'new'",
    "ALTER TABLE plain ADD COLUMN c text",
    "ALTER TABLE plain DROP COLUMN v",
    "ALTER TABLE plain ALTER v SET DEFAULT 'later'",
    "ALTER TABLE plain ALTER v SET NOT NULL",
    "ALTER TABLE plain ALTER v TYPE varchar",
    "CREATE INDEX ON plain (v); ALTER TABLE plain RENAME CONSTRAINT plain_pkey TO key",
    "ALTER TABLE root_1 RENAME TO other_name",
    "CREATE TABLE root_9 PARTITION OF root FOR VALUES FROM (9) TO (10); INSERT INTO root VALUES (9, 9, '')",
    "CREATE TABLE root_0 PARTITION OF root DEFAULT; INSERT INTO root VALUES (8, 80, 'eighty')",
    "CREATE TABLE e (LIKE root); ALTER TABLE root ATTACH PARTITION e FOR VALUES FROM (5) TO (6)",
)
OUTSIDE_A_TRANSACTION = ("VACUUM FULL plain", "VACUUM ANALYZE plain", "CLUSTER plain USING plain_pkey")


def definitions(admin: psycopg.Connection, lake: Lake) -> dict[str, TableDefinition]:
    found = read_definitions(admin, lake, postgres_source(lake))
    return {name.table: definition for name, definition in found.items()}


def is_unseen_now(admin: psycopg.Connection, lake: Lake, table: str) -> bool:
    """Return whether the table holds rows that can have come before it was followed."""
    return not definitions(admin, lake)[table].followed and has_rows(admin, TableName("web", "public", table))


@pytest.mark.parametrize("ddl", SILENT)
@pytest.mark.parametrize("is_one_transaction", [True, False])
def test_a_change_of_rows_without_an_event_is_noticed(
    admin: psycopg.Connection, ddl: str, is_one_transaction: bool
) -> None:
    lake = lake_of('["public.*"]')
    admin.execute(TABLES.encode())
    before = definitions(admin, lake)
    _run(admin, ddl, is_one_transaction)
    now = definitions(admin, lake)
    found = [silent_changes(before[name], now[name]) for name in ("plain", "root")]
    (changes,) = [each for each in found if each is not None]
    assert SILENT[ddl] in " ".join(changes.reasons)
    assert [before[name].fingerprint == now[name].fingerprint for name in ("plain", "root")].count(False) == 1
    if changes.condition is not None:
        rows = admin.execute(f"SELECT v FROM root WHERE {changes.condition}".encode()).fetchall()
        assert {v for (v,) in rows} <= {"loaded", "new"}
        assert rows


@pytest.mark.parametrize("ddl", [*HARMLESS, *OUTSIDE_A_TRANSACTION])
def test_what_changes_no_row_or_has_events_is_not_mistaken_for_it(
    admin: psycopg.Connection, ddl: str
) -> None:
    lake = lake_of('["public.*"]')
    admin.execute(TABLES.encode())
    before = definitions(admin, lake)
    _run(admin, ddl, is_one_transaction=False)
    now = definitions(admin, lake)
    assert [silent_changes(before[name], now[name]) for name in ("plain", "root")] == [None, None]


@pytest.mark.parametrize(
    ("ddl", "is_unseen"),
    [
        ("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)", False),
        (
            "CREATE TABLE t AS SELECT 1 AS id, 2 AS n; ALTER TABLE t ADD PRIMARY KEY (id); "
            "CREATE INDEX ON t (n)",
            False,
        ),
        ("CREATE TABLE t_new AS SELECT 1 AS id; ALTER TABLE t_new RENAME TO t", True),
        ("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS id; ALTER TABLE s.t SET SCHEMA public", True),
        ("CREATE TABLE t_new (id int PRIMARY KEY); ALTER TABLE t_new RENAME TO t", False),
        (
            "CREATE TABLE r (id int, n int) PARTITION BY LIST (n); CREATE TABLE t PARTITION OF r DEFAULT; "
            "INSERT INTO r VALUES (1, 1); ALTER TABLE r DETACH PARTITION t",
            True,
        ),
    ],
)
@pytest.mark.parametrize("is_one_transaction", [True, False])
def test_a_new_table_is_unseen_if_it_got_rows_under_another_name_or_elsewhere(
    admin: psycopg.Connection, ddl: str, is_unseen: bool, is_one_transaction: bool
) -> None:
    lake = lake_of('["public.*"]')
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    try:
        _run(admin, ddl, is_one_transaction)
        assert is_unseen_now(admin, lake, "t") == is_unseen
    finally:
        drop_role(admin, replication_user(lake, postgres_source(lake)))


def test_a_table_from_before_its_schema_was_published_is_unseen_and_one_that_is_published_alone_is_too(
    admin: psycopg.Connection,
) -> None:
    admin.execute("CREATE TABLE early AS SELECT 1 AS id; CREATE TABLE empty (id int)")
    lake = lake_of('["public.*"]')
    name = publication(lake, postgres_source(lake))
    admin.execute(f'CREATE PUBLICATION "{name}" FOR TABLES IN SCHEMA public'.encode())
    admin.execute("CREATE TABLE late AS SELECT 1 AS id")
    found = definitions(admin, lake)
    assert {table: is_unseen_now(admin, lake, table) for table in found} == {
        "early": True,
        "empty": False,
        "late": False,
    }
    admin.execute(f'ALTER PUBLICATION "{name}" SET TABLE early, late'.encode())
    assert is_unseen_now(admin, lake, "late")


def test_a_definition_survives_its_file(admin: psycopg.Connection) -> None:
    admin.execute(TABLES.encode())
    for definition in definitions(admin, lake_of('["public.*"]')).values():
        assert TableDefinition.from_json(definition.to_json()) == definition


def _run(admin: psycopg.Connection, ddl: str, is_one_transaction: bool) -> None:
    if is_one_transaction:
        with admin.transaction():
            admin.execute(ddl.encode())
        return
    for statement in ddl.split("; "):
        admin.execute(statement.encode())
