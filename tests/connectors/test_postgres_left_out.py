"""A table of a real PostgreSQL that the lake cannot keep exact is left out, and no other table suffers."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from connectors.engines.postgres.names import replication_user
from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.postgres.preflight import (
    check_later_tables,
    check_replication,
    check_server,
    check_tables,
    warnings_before_publishing,
)
from connectors.engines.postgres.preparation import apply_postgres_setup
from connectors.engines.postgres.table_check import PostgresFindings
from tests.connectors.test_postgres_setup import PASSWORD, drop_role, lake_of, log_in, own_tables, published
from tests.postgres_source import postgres_source
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName
from tributary.local.postgres import PostgresServer, connect_as_admin

pytestmark = pytest.mark.slow


@pytest.fixture
def lake(admin: psycopg.Connection) -> Iterator[Lake]:
    lake = lake_of('["public.*"]')
    yield lake
    drop_role(admin, replication_user(lake, postgres_source(lake)))


def source_of(lake: Lake) -> PostgresSource:
    return postgres_source(lake)


def prepared(admin: psycopg.Connection, lake: Lake) -> PostgresFindings:
    """Check and prepare the database as a start does."""
    found = check_tables(admin, lake, source_of(lake))
    untaken = found.parts | {each.table for each in found.left_out}
    apply_postgres_setup(admin, lake, source_of(lake), PASSWORD, untaken)
    return found


def reasons(found: PostgresFindings) -> dict[str, str]:
    return {each.table.table: " ".join(map(str, each.problems)) for each in found.left_out}


def taken(found: PostgresFindings) -> set[str]:
    return {name.table for name in found.tables}


def test_tables_without_a_key_are_listed_at_once_stay_writable_and_come_in_once_they_are_mended(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake
) -> None:
    admin.execute("CREATE TABLE kept (id int PRIMARY KEY); CREATE TABLE r1 (a int); CREATE TABLE r2 (a int)")
    admin.execute("INSERT INTO r1 VALUES (1)")
    found = prepared(admin, lake)
    assert taken(found) == {"kept"}
    assert set(reasons(found)) == {"r1", "r2"}
    assert published(admin, lake) == {"public.kept", *own_tables(lake)}
    admin.execute("UPDATE r1 SET a = 2")
    with log_in(postgres, database, lake) as replication:
        check_replication(replication, lake, source_of(lake), {each.table for each in found.left_out})
        with pytest.raises(PostgresNotReady, match=r"may not read public\.r1"):
            check_replication(replication, lake, source_of(lake))

    admin.execute("ALTER TABLE r1 ADD PRIMARY KEY (a); DROP TABLE r2")
    found = prepared(admin, lake)
    assert (taken(found), found.left_out) == ({"kept", "r1"}, ())
    admin.execute("CREATE TABLE later (id int PRIMARY KEY)")
    assert "public.later" in published(admin, lake)


def test_a_database_with_partitions_is_published_whole_and_its_partitions_need_no_word(
    admin: psycopg.Connection, lake: Lake
) -> None:
    admin.execute(
        """
        CREATE TABLE sales (id int, y int, v text, PRIMARY KEY (id, y)) PARTITION BY RANGE (y);
        CREATE TABLE sales_24 PARTITION OF sales FOR VALUES FROM (2024) TO (2025);
        CREATE TABLE sales_25 PARTITION OF sales FOR VALUES FROM (2025) TO (2026) PARTITION BY LIST (id);
        CREATE TABLE sales_25_1 PARTITION OF sales_25 FOR VALUES IN (1);
        """
    )
    found = prepared(admin, lake)
    assert (taken(found), found.left_out, found.warnings) == ({"sales"}, (), ())
    assert {part.table for part in found.parts} == {"sales_24", "sales_25", "sales_25_1"}
    admin.execute("CREATE TABLE later (id int PRIMARY KEY)")
    assert published(admin, lake) == {"public.sales", "public.later", *own_tables(lake)}
    admin.execute("INSERT INTO sales VALUES (1, 2025, 'a'); UPDATE sales SET v = 'b'; DELETE FROM sales")


@pytest.mark.parametrize(
    ("ddl", "reason"),
    [
        (
            """
            CREATE TABLE p (id int NOT NULL, region text NOT NULL, v text) PARTITION BY LIST (region);
            CREATE UNIQUE INDEX ON p (id, region);
            ALTER TABLE p REPLICA IDENTITY FULL;
            CREATE TABLE parts.p_eu PARTITION OF p FOR VALUES IN ('eu');
            """,
            r"parts\.p_eu without a replica identity",
        ),
        (
            """
            CREATE TABLE p (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
            CREATE TABLE parts.p_eu PARTITION OF p FOR VALUES IN ('eu');
            ALTER TABLE parts.p_eu REPLICA IDENTITY NOTHING;
            """,
            r"parts\.p_eu without a replica identity",
        ),
        (
            """
            CREATE TABLE p (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
            ALTER TABLE p REPLICA IDENTITY FULL;
            CREATE TABLE parts.p_eu PARTITION OF p FOR VALUES IN ('eu');
            """,
            r"FULL, but not for the partition parts\.p_eu",
        ),
        (
            """
            CREATE TABLE p (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
            CREATE UNLOGGED TABLE parts.p_eu PARTITION OF p FOR VALUES IN ('eu');
            """,
            r"parts\.p_eu, unlogged",
        ),
    ],
)
def test_a_partition_that_is_not_replicated_exactly_leaves_its_table_out_and_stays_writable(
    admin: psycopg.Connection, ddl: str, reason: str
) -> None:
    lake = lake_of('["public.*"]', '[table."shop.public.p"]\nkey = ["id", "region"]')
    admin.execute(f"CREATE SCHEMA parts; CREATE TABLE kept (id int PRIMARY KEY); {ddl}".encode())
    try:
        found = prepared(admin, lake)
        assert taken(found) == {"kept"}
        assert reasons(found).keys() == {"p"}
        assert _has(reasons(found)["p"], reason)
        admin.execute("INSERT INTO p VALUES (1, 'eu', 'a'); UPDATE p SET v = 'b'; DELETE FROM p")
    finally:
        drop_role(admin, replication_user(lake, source_of(lake)))


def test_a_parent_whose_snapshot_would_hold_its_children_s_rows_is_left_out(
    admin: psycopg.Connection, lake: Lake
) -> None:
    admin.execute(
        "CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent)"
    )
    found = prepared(admin, lake)
    assert (taken(found), set(reasons(found))) == ({"child"}, {"parent"})


INEXACT = {
    "varbit": "B'1'",
    "timetz": "'12:00+02'",
    "d_varbit": "B'1'",
    "timestamp[]": "'{2024-01-01}'",
    "timestamptz[]": "'{2024-01-01}'",
    "time[]": "'{12:00}'",
    "date": "'0044-03-15 BC'",
    "timestamp": "'0044-03-15 12:00 BC'",
    "timestamptz": "'0044-03-15 12:00 BC'",
}
EXACT = {
    "date": "'-infinity'",
    "timestamp": "'0001-01-01'",
    "bit(9)": "B'100000000'",
    "bytea": "'\\x00'",
    "int[]": "'{1}'",
    "text[]": "'{a}'",
    "time": "'12:00'",
    "inet": "'::1'",
}


def test_a_key_of_which_two_values_would_become_one_leaves_its_table_out(
    admin: psycopg.Connection, lake: Lake
) -> None:
    admin.execute("CREATE DOMAIN d_varbit AS bit varying(12)")
    for kind, types in (("inexact", INEXACT), ("exact", EXACT)):
        for number, (database_type, value) in enumerate(types.items()):
            admin.execute(f"CREATE TABLE {kind}_{number} (k {database_type} PRIMARY KEY)".encode())
            admin.execute(f"INSERT INTO {kind}_{number} VALUES ({value})".encode())
    admin.execute("CREATE TABLE only_values (id int PRIMARY KEY, a varbit, b timetz, c date)")
    admin.execute("INSERT INTO only_values VALUES (1, B'1', '12:00+02', '0044-03-15 BC')")
    admin.execute("CREATE TABLE included (id int, a timetz, PRIMARY KEY (id) INCLUDE (a))")
    found = check_tables(admin, lake, source_of(lake))
    assert set(reasons(found)) == {f"inexact_{number}" for number in range(len(INEXACT))}
    fit = {"only_values", "included", *(f"exact_{number}" for number in range(len(EXACT)))}
    assert taken(found) == fit
    untaken = [one.table for one in found.left_out]
    apply_postgres_setup(admin, lake, source_of(lake), PASSWORD, untaken)


def test_the_connector_s_user_can_judge_tables_that_were_created_later(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake
) -> None:
    prepared(admin, lake)
    admin.execute("CREATE TABLE bits (k varbit PRIMARY KEY); CREATE TABLE fit (id int PRIMARY KEY)")
    admin.execute("CREATE TABLE ancient (k date PRIMARY KEY); INSERT INTO ancient VALUES ('0044-03-15 BC')")
    admin.execute("CREATE TABLE hiding (id int PRIMARY KEY); ALTER TABLE hiding ENABLE ROW LEVEL SECURITY")
    with log_in(postgres, database, lake) as replication:
        found = check_later_tables(replication, lake, source_of(lake)).left_out
    assert [one.table.table for one in found] == ["ancient", "bits", "hiding"]


@pytest.mark.parametrize(
    "mend",
    [
        "ALTER ROLE {role} BYPASSRLS",
        "CREATE POLICY all_rows ON notes FOR SELECT TO {role} USING (true)",
        "CREATE POLICY all_rows ON notes USING (true)",
        "ALTER TABLE notes DISABLE ROW LEVEL SECURITY",
    ],
)
def test_a_table_whose_policies_hide_rows_is_left_out_until_the_user_sees_all_rows(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake, mend: str
) -> None:
    admin.execute(
        """
        CREATE TABLE notes (id int PRIMARY KEY, owner text);
        INSERT INTO notes VALUES (1, 'me'), (2, 'you');
        ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON notes USING (owner = current_user);
        """
    )
    assert _has(reasons(prepared(admin, lake))["notes"], "may not see every row.*CREATE POLICY.*BYPASSRLS")
    role = sql.Identifier(replication_user(lake, source_of(lake)))
    admin.execute(sql.SQL(mend).format(role=role))
    assert prepared(admin, lake).left_out == ()
    with log_in(postgres, database, lake) as replication:
        assert replication.execute("SELECT count(*) FROM notes").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("ddl", "is_left_out"),
    [
        ("ALTER TABLE notes OWNER TO {role}", False),
        ("ALTER TABLE notes OWNER TO {role}; ALTER TABLE notes FORCE ROW LEVEL SECURITY", True),
        (
            "CREATE POLICY a ON notes USING (true); CREATE POLICY b ON notes AS RESTRICTIVE USING (id > 1)",
            True,
        ),
        ("CREATE POLICY a ON notes FOR UPDATE USING (true)", True),
    ],
)
def test_what_a_user_sees_under_row_level_security_is_judged_as_postgresql_does(
    postgres: PostgresServer,
    database: str,
    admin: psycopg.Connection,
    lake: Lake,
    ddl: str,
    is_left_out: bool,
) -> None:
    admin.execute("CREATE TABLE notes (id int PRIMARY KEY); INSERT INTO notes VALUES (1), (2)")
    prepared(admin, lake)
    admin.execute("ALTER TABLE notes ENABLE ROW LEVEL SECURITY")
    admin.execute(sql.SQL(ddl).format(role=sql.Identifier(replication_user(lake, source_of(lake)))))
    with log_in(postgres, database, lake) as replication:
        seen = replication.execute("SELECT count(*) FROM notes").fetchall()
    assert (seen != [(2,)]) == is_left_out
    assert bool(check_tables(admin, lake, source_of(lake)).left_out) == is_left_out


def test_a_replica_identity_index_without_the_primary_key_leaves_the_table_out(
    admin: psycopg.Connection, lake: Lake
) -> None:
    admin.execute("CREATE TABLE people (id int PRIMARY KEY, nr int NOT NULL UNIQUE)")
    admin.execute("ALTER TABLE people REPLICA IDENTITY USING INDEX people_nr_key")
    assert _has(
        reasons(prepared(admin, lake))["people"], "replica identity of nr, expected one that holds id"
    )
    admin.execute("ALTER TABLE people REPLICA IDENTITY DEFAULT")
    assert prepared(admin, lake).left_out == ()


PRINTED = """
SELECT interval '1 mon 2 days 03:04:05'::text, '\\x00ff'::bytea::text, date '2024-02-29'::text,
  float8 '0.1'::text, timestamptz '2024-01-01 00:00+00'::text
"""


def test_the_connector_s_user_prints_values_the_same_whatever_the_database_sets(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake
) -> None:
    settings = {
        "IntervalStyle": "sql_standard",
        "bytea_output": "escape",
        "DateStyle": "German",
        "extra_float_digits": "-5",
        "TimeZone": "Asia/Tokyo",
    }
    for name, value in settings.items():
        admin.execute(f"ALTER DATABASE {database} SET {name} = '{value}'".encode())
    prepared(admin, lake)
    with log_in(postgres, database, lake) as replication:
        assert replication.execute(PRINTED).fetchall() == [
            ("1 mon 2 days 03:04:05", "\\x00ff", "2024-02-29", "0.1", "2024-01-01 00:00:00+00")
        ]
        check_replication(replication, lake, source_of(lake))


@pytest.mark.parametrize(("name", "value"), [("IntervalStyle", "iso_8601"), ("bytea_output", "escape")])
def test_a_setting_that_cannot_be_set_for_the_connector_s_user_is_reported(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake, name: str, value: str
) -> None:
    prepared(admin, lake)
    role = replication_user(lake, source_of(lake))
    admin.execute(f'ALTER ROLE "{role}" IN DATABASE {database} SET {name} = {value}'.encode())
    with (
        log_in(postgres, database, lake) as replication,
        pytest.raises(PostgresNotReady, match=f"{name}.*ALTER ROLE"),
    ):
        check_replication(replication, lake, source_of(lake))


def test_a_database_without_an_encoding_is_refused_for_that_reason_alone(
    postgres: PostgresServer, lake: Lake
) -> None:
    name = f"ascii_{secrets.token_hex(4)}"
    made = f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with connect_as_admin(postgres) as server:
        server.execute(made.encode())
        try:
            with (
                connect_as_admin(postgres, name) as connection,
                pytest.raises(PostgresNotReady, match="found the encoding SQL_ASCII") as caught,
            ):
                check_server(connection, lake, source_of(lake))
            assert "wal_level" not in str(caught.value)
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_before_a_schema_is_published_whole_its_owner_learns_what_that_means(
    postgres: PostgresServer, admin: psycopg.Connection
) -> None:
    connection = f'[source.shop.connection]\nhost = "127.0.0.1"\nport = {postgres.port}\npassword_env = "P"\n'
    lake = lake_of('["public.*"]', connection)
    admin.execute("CREATE TABLE kept (id int PRIMARY KEY)")
    try:
        (warning,) = warnings_before_publishing(admin, lake, source_of(lake))
        assert 'write the pattern as "public.?*"' in warning
        prepared(admin, lake)
        assert warnings_before_publishing(admin, lake, source_of(lake)) == ()
        admin.execute("CREATE TABLE later (id int); INSERT INTO later VALUES (1)")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            admin.execute("UPDATE later SET id = 2")
        one_by_one = lake_of('["public.?*"]', connection)
        assert warnings_before_publishing(admin, one_by_one, source_of(one_by_one)) == ()
        assert TableName("shop", "public", "later") in {each.table for each in prepared(admin, lake).left_out}
        admin.execute("UPDATE later SET id = 2")
    finally:
        drop_role(admin, replication_user(lake, source_of(lake)))


def _has(text: str, pattern: str) -> bool:

    return re.search(pattern, text) is not None
