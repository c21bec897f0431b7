"""A real PostgreSQL is prepared for replication with as few rights as possible, and nothing breaks."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from psycopg import sql

from connectors.engines.postgres.names import (
    publication,
    replication_slot,
    replication_user,
    signal_table,
)
from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.postgres.preflight import check_replication, check_server, check_tables
from connectors.engines.postgres.preparation import (
    PostgresSetupFailed,
    apply_postgres_setup,
    heartbeat_query,
    later_statements,
    setup_script,
    setup_sql,
)
from connectors.engines.postgres.table_facts import UniqueKey, read_tables
from tests.contract.lake_files import toml
from tests.contract.test_patterns import PATTERN_SETS
from tests.postgres_source import postgres_source
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.patterns import TablePattern, TablePatterns
from tributary.local.postgres import PostgresServer, connect_as_admin

pytestmark = pytest.mark.slow

PASSWORD = "it's a $secret$ \\ %s"
SHOP = """
CREATE ROLE {owner} LOGIN;
CREATE SCHEMA sales;
CREATE TABLE public.orders (id int PRIMARY KEY, note text);
CREATE TABLE public."Order Items" (id int PRIMARY KEY);
CREATE TABLE sales.order_a (id int PRIMARY KEY);
CREATE TABLE sales.order_tmp (id int PRIMARY KEY);
CREATE TABLE sales.secrets (id int);
ALTER SCHEMA public OWNER TO {owner};
ALTER TABLE public.orders OWNER TO {owner};
"""


@pytest.fixture
def owner(admin: psycopg.Connection) -> Iterator[str]:
    """The role of the application that owns these tables."""
    name = f"owner_{secrets.token_hex(4)}"
    admin.execute(sql.SQL(SHOP).format(owner=sql.Identifier(name)))
    yield name
    admin.execute(sql.SQL("DROP OWNED BY {0} CASCADE; DROP ROLE {0}").format(sql.Identifier(name)))


@pytest.fixture
def lake(admin: psycopg.Connection, owner: str) -> Iterator[Lake]:
    """A new lake for each test, because all tests share the server and its roles."""
    del owner
    lake = lake_of('["public.*", "sales.order_*", "!sales.order_tmp"]')
    yield lake
    drop_role(admin, replication_user(lake, postgres_source(lake)))


def lake_of(tables: str, more: str = "") -> Lake:
    return parse_lake(
        f'[lake]\nname = "l{secrets.token_hex(5)}"\n'
        f'[source.shop]\nengine = "postgres"\ndatabase = "shop"\ntables = {tables}\n{more}'
    )


def drop_role(admin: psycopg.Connection, role: str) -> None:
    if admin.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None:
        admin.execute(sql.SQL("DROP OWNED BY {0} CASCADE; DROP ROLE {0}").format(sql.Identifier(role)))


def log_in(postgres: PostgresServer, database: str, lake: Lake) -> psycopg.Connection:
    return psycopg.connect(
        host="127.0.0.1",
        port=postgres.port,
        dbname=database,
        user=replication_user(lake, postgres_source(lake)),
        password=PASSWORD,
        autocommit=True,
    )


def published(admin: psycopg.Connection, lake: Lake) -> set[str]:
    name = publication(lake, postgres_source(lake))
    rows = admin.execute(
        "SELECT format('%%s.%%s', schemaname, tablename) FROM pg_publication_tables WHERE pubname = %s",
        (name,),
    )
    return {row[0] for row in rows}


def own_tables(lake: Lake) -> set[str]:
    """Return the tables that Tributary publishes for itself."""
    return {"tributary.heartbeat", f"tributary.{signal_table(lake, postgres_source(lake))}"}


def problems_of(admin: psycopg.Connection, lake: Lake) -> str:
    found = check_tables(admin, lake, postgres_source(lake))
    return " ".join(str(problem) for each in found.left_out for problem in each.problems)


def test_the_replication_user_can_do_what_debezium_does(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake
) -> None:
    source = postgres_source(lake)
    slot = replication_slot(lake, source)
    check_server(admin, lake, source)
    assert [str(name) for name in check_tables(admin, lake, source).tables] == [
        "shop.public.Order Items",
        "shop.public.orders",
        "shop.sales.order_a",
    ]
    assert apply_postgres_setup(admin, lake, source, PASSWORD) == ()
    with log_in(postgres, database, lake) as replication:
        check_replication(replication, lake, source)
        replication.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
        try:
            replication.execute('SELECT * FROM public.orders, public."Order Items", sales.order_a')
            for _ in range(2):
                replication.execute(heartbeat_query(lake, source).encode())
            admin.execute("INSERT INTO public.orders VALUES (1, 'one')")
            changes = replication.execute(
                "SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL, "
                "'proto_version', '1', 'publication_names', %s)",
                (slot, publication(lake, source)),
            ).fetchall()
            assert any(data.startswith(b"I") and b"one" in data for (data,) in changes)
            assert any(data.startswith(b"U") for (data,) in changes), "the second heartbeat"
            check_server(admin, lake, source)
        finally:
            replication.execute("SELECT pg_drop_replication_slot(%s)", (slot,))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM sales.order_tmp",
        "SELECT * FROM sales.secrets",
        "INSERT INTO public.orders VALUES (2)",
        "UPDATE public.orders SET note = ''",
        "DELETE FROM public.orders",
        "TRUNCATE public.orders",
        "CREATE TABLE public.mine (id int)",
        "CREATE TABLE sales.mine (id int)",
        "CREATE TABLE tributary.mine (id int)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "DELETE FROM tributary.heartbeat",
        "SELECT beaten_at FROM tributary.heartbeat",
        "SELECT * FROM pg_authid",
        "COPY public.orders TO PROGRAM 'true'",
    ],
)
def test_the_replication_user_can_do_nothing_else(
    statement: str, postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake
) -> None:
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    with (
        log_in(postgres, database, lake) as replication,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        replication.execute(statement.encode())


def test_the_role_has_no_attribute_but_login_and_replication(admin: psycopg.Connection, lake: Lake) -> None:
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    row = admin.execute(
        "SELECT rolcanlogin, rolreplication, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls "
        "FROM pg_roles WHERE rolname = %s",
        (replication_user(lake, postgres_source(lake)),),
    ).fetchone()
    assert row == (True, True, False, False, False, False)


def test_the_server_never_sees_the_password(
    postgres: PostgresServer, admin: psycopg.Connection, lake: Lake
) -> None:
    admin.execute("SET log_statement = 'all'")
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    log = postgres.log.read_text()
    assert f'ALTER ROLE "{replication_user(lake, postgres_source(lake))}" PASSWORD' in log
    assert "secret$" not in log


def test_a_second_setup_only_adds_new_tables(admin: psycopg.Connection, lake: Lake) -> None:
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    before = state_of(admin)
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    assert state_of(admin) == before
    admin.execute("CREATE TABLE sales.order_b (id int PRIMARY KEY)")
    assert "sales.order_b" not in published(admin, lake)
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    assert "sales.order_b" in published(admin, lake)


def test_a_concurrent_change_of_the_catalog_only_delays_the_setup(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake
) -> None:
    def waits() -> bool:
        found = admin.execute(
            "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'", (pid,)
        )
        return found.fetchone() is not None

    with (
        connect_as_admin(postgres, database) as other,
        connect_as_admin(postgres, database) as preparing,
        ThreadPoolExecutor(1) as threads,
    ):
        pid = preparing.info.backend_pid
        other.execute("BEGIN; GRANT SELECT ON orders TO PUBLIC; REVOKE SELECT ON orders FROM PUBLIC")
        prepared = threads.submit(apply_postgres_setup, preparing, lake, postgres_source(lake), PASSWORD)
        gives_up_at = time.monotonic() + 30
        while not waits():
            assert not prepared.done()
            assert time.monotonic() < gives_up_at
            time.sleep(0.02)
        other.execute("COMMIT")
        assert prepared.result(30) == ()
    assert "public.orders" in published(admin, lake)
    with log_in(postgres, database, lake) as replication:
        replication.execute("SELECT FROM orders")


def state_of(admin: psycopg.Connection) -> list[Any]:
    """Return all state that the setup may change."""
    return [
        admin.execute(query).fetchall()
        for query in (
            "SELECT relname, relacl::text FROM pg_class WHERE relnamespace::regnamespace::text IN "
            "('public', 'sales', 'tributary') ORDER BY 1",
            "SELECT nspname, nspacl::text FROM pg_namespace ORDER BY 1",
            "SELECT defaclrole, defaclacl::text FROM pg_default_acl ORDER BY 1, 2",
            "SELECT * FROM pg_publication_tables ORDER BY 1, 2, 3",
            "SELECT pubname, puballtables, pubviaroot FROM pg_publication ORDER BY 1",
            "SELECT rolname, rolsuper, rolreplication, rolcanlogin FROM pg_roles ORDER BY 1",
        )
    ]


def test_a_table_that_misses_the_snapshot_is_reported(admin: psycopg.Connection, lake: Lake) -> None:
    source = postgres_source(lake)
    slot = replication_slot(lake, source)
    apply_postgres_setup(admin, lake, source, PASSWORD)
    admin.execute(
        "CREATE TABLE sales.order_b (id int PRIMARY KEY); INSERT INTO sales.order_b VALUES (1);"
        "CREATE TABLE sales.order_c (id int PRIMARY KEY);"
    )
    admin.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
    try:
        (warning,) = apply_postgres_setup(admin, lake, source, PASSWORD)
        assert warning.startswith("sales.order_b held rows before it was published")
        assert apply_postgres_setup(admin, lake, source, PASSWORD) == ()
    finally:
        admin.execute("SELECT pg_drop_replication_slot(%s)", (slot,))


def test_a_whole_schema_publishes_later_tables_and_makes_them_readable(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake, owner: str
) -> None:
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    admin.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(owner)))
    admin.execute("CREATE TABLE public.later (id int PRIMARY KEY); RESET ROLE")
    assert "public.later" in published(admin, lake)
    with log_in(postgres, database, lake) as replication:
        replication.execute("SELECT * FROM public.later")
        check_replication(replication, lake, postgres_source(lake))


def test_another_setup_takes_away_the_right_to_read_later_partitions(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake
) -> None:
    source = postgres_source(lake)
    apply_postgres_setup(admin, lake, source, PASSWORD)
    admin.execute(
        "CREATE TABLE public.calls (id int, y int, PRIMARY KEY (id, y)) PARTITION BY RANGE (y);"
        "CREATE TABLE public.calls_1 PARTITION OF public.calls FOR VALUES FROM (1) TO (9) "
        "PARTITION BY RANGE (y);"
        "CREATE TABLE public.calls_1_1 PARTITION OF public.calls_1 FOR VALUES FROM (1) TO (2);"
        "INSERT INTO public.calls VALUES (1, 1)"
    )
    with log_in(postgres, database, lake) as replication:
        replication.execute("SELECT * FROM public.calls_1_1")
        for _ in range(2):
            admin.execute("; ".join(later_statements(lake, source)).encode())
            assert replication.execute("SELECT * FROM public.calls").fetchall() == [(1, 1)]
            for part in ("calls_1", "calls_1_1"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    replication.execute(f"SELECT * FROM public.{part}".encode())
        admin.execute("ALTER TABLE public.calls_1 DETACH PARTITION public.calls_1_1")
        admin.execute("; ".join(later_statements(lake, source)).encode())
        assert replication.execute("SELECT * FROM public.calls_1_1").fetchall() == [(1, 1)]


def test_only_tables_that_the_lake_takes_are_published(admin: psycopg.Connection, lake: Lake) -> None:
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    assert published(admin, lake) == {
        "public.orders",
        "public.Order Items",
        "sales.order_a",
        *own_tables(lake),
    }


def test_a_schema_with_an_excluded_table_is_published_table_by_table(
    admin: psycopg.Connection, owner: str
) -> None:
    del owner
    lake = lake_of('["public.*", "!public.Order*"]')
    try:
        apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
        assert published(admin, lake) == {"public.orders", *own_tables(lake)}
    finally:
        drop_role(admin, replication_user(lake, postgres_source(lake)))


@pytest.mark.parametrize("tables", ['["public.*"]', '["public.o*", "public.keyless"]'])
def test_a_table_whose_updates_would_break_is_refused_and_its_application_still_works(
    admin: psycopg.Connection, owner: str, tables: str
) -> None:
    del owner
    lake = lake_of(tables)
    admin.execute("CREATE TABLE public.keyless (id int); INSERT INTO public.keyless VALUES (1)")
    assert re.search(r"shop\.public\.keyless.*REPLICA IDENTITY FULL", problems_of(admin, lake))
    with pytest.raises(PostgresSetupFailed, match=r"public\.keyless.*Give them a primary key") as caught:
        apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    assert PASSWORD not in str(caught.value)
    assert published(admin, lake) == set()
    query = "SELECT FROM pg_roles WHERE rolname = %s"
    assert admin.execute(query, (replication_user(lake, postgres_source(lake)),)).fetchone() is None
    admin.execute("UPDATE public.keyless SET id = 2")


def test_a_deferrable_key_is_refused_if_postgresql_would_refuse_the_application_s_updates(
    admin: psycopg.Connection, owner: str
) -> None:
    del owner
    lake = lake_of('["public.slots"]')
    admin.execute("CREATE TABLE public.slots (id int, note text, PRIMARY KEY (id) DEFERRABLE)")
    admin.execute("INSERT INTO public.slots VALUES (1, ''), (2, '')")
    admin.execute("CREATE PUBLICATION by_hand FOR TABLE public.slots")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        admin.execute("UPDATE public.slots SET note = 'x'")
    admin.execute("DROP PUBLICATION by_hand")

    assert re.search(r"shop\.public\.slots.*DEFERRABLE.*ADD PRIMARY KEY \(id\)", problems_of(admin, lake))
    with pytest.raises(PostgresSetupFailed, match=r"public\.slots.*not DEFERRABLE"):
        apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    admin.execute("UPDATE public.slots SET note = 'x'")

    admin.execute("ALTER TABLE public.slots DROP CONSTRAINT slots_pkey, ADD PRIMARY KEY (id)")
    try:
        assert check_tables(admin, lake, postgres_source(lake)).warnings == ()
        apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
        admin.execute("UPDATE public.slots SET note = 'y'")
    finally:
        drop_role(admin, replication_user(lake, postgres_source(lake)))


@pytest.mark.parametrize(
    "ddl",
    [
        "CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN sales.mine AS mood",
        "CREATE TYPE sales.mine AS ENUM ()",
    ],
)
def test_a_database_on_which_debezium_cannot_start_is_refused(
    admin: psycopg.Connection, lake: Lake, ddl: str
) -> None:
    admin.execute(ddl.encode())
    with pytest.raises(PostgresNotReady, match=r"found the type sales\.mine"):
        check_tables(admin, lake, postgres_source(lake))


def test_with_full_replica_identity_a_deferrable_key_is_refused_for_the_rows_it_would_lose(
    admin: psycopg.Connection, owner: str
) -> None:
    del owner
    lake = lake_of('["public.slots"]')
    admin.execute("CREATE TABLE public.slots (id int, nr int NOT NULL UNIQUE, PRIMARY KEY (id) DEFERRABLE)")
    admin.execute("ALTER TABLE public.slots REPLICA IDENTITY FULL")
    assert re.search(r"shop\.public\.slots.*former row", problems_of(admin, lake))

    with_other_key = lake_of('["public.slots"]', '[table."shop.public.slots"]\nkey = ["nr"]')
    assert check_tables(admin, with_other_key, postgres_source(with_other_key)).warnings == ()


def test_the_owner_of_the_tables_can_prepare_them_without_being_superuser(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, owner: str
) -> None:
    lake = lake_of('["public.*"]')
    source = postgres_source(lake)
    admin.execute(
        sql.SQL(
            "ALTER ROLE {owner} PASSWORD 'x'; ALTER DATABASE {database} OWNER TO {owner};"
            'ALTER TABLE public."Order Items" OWNER TO {owner};'
            "CREATE ROLE {role} LOGIN REPLICATION"
        ).format(
            owner=sql.Identifier(owner),
            database=sql.Identifier(database),
            role=sql.Identifier(replication_user(lake, source)),
        )
    )
    own = f"host=127.0.0.1 port={postgres.port} dbname={database} user={owner} password=x"
    try:
        with psycopg.connect(own, autocommit=True) as connection:
            connection.execute(setup_script(lake, source).partition("-- Then set")[0].encode())
        assert published(admin, lake) == {"public.orders", "public.Order Items", *own_tables(lake)}
    finally:
        admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO postgres").format(sql.Identifier(database)))
        drop_role(admin, replication_user(lake, source))


def test_a_user_without_the_right_to_prepare_a_database_is_told_what_to_do(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, lake: Lake, owner: str
) -> None:
    admin.execute(sql.SQL("ALTER ROLE {} PASSWORD 'x'").format(sql.Identifier(owner)))
    own = f"host=127.0.0.1 port={postgres.port} dbname={database} user={owner} password=x"
    with (
        psycopg.connect(own, autocommit=True) as connection,
        pytest.raises(PostgresSetupFailed, match=r"permission denied.*administrator"),
    ):
        apply_postgres_setup(connection, lake, postgres_source(lake), PASSWORD)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("REVOKE SELECT ON public.orders FROM {role}", r"may not read public\.orders"),
        ("REVOKE USAGE ON SCHEMA sales FROM {role}", r"may not read sales\.order_a"),
        ("REVOKE INSERT ON tributary.heartbeat FROM {role}", r"may not write tributary\.heartbeat"),
        ("DROP TABLE tributary.heartbeat", r"may not write tributary\.heartbeat"),
        ("REVOKE DELETE ON tributary.{signals} FROM {role}", r"may not write tributary\.signals_"),
        ("DROP TABLE tributary.{signals}", r"may not write tributary\.signals_"),
        ("ALTER ROLE {role} NOREPLICATION", "may not replicate"),
        ("ALTER ROLE {role} SUPERUSER", "is a superuser"),
        ("ALTER PUBLICATION {publication} DROP TABLE sales.order_a", r"without sales\.order_a"),
        ("ALTER PUBLICATION {publication} SET (publish = 'insert')", "leaves out a kind of change"),
        ("DROP PUBLICATION {publication}", "no publication"),
    ],
)
def test_a_missing_right_for_replication_is_reported(
    damage: str,
    complaint: str,
    postgres: PostgresServer,
    database: str,
    admin: psycopg.Connection,
    lake: Lake,
) -> None:
    source = postgres_source(lake)
    apply_postgres_setup(admin, lake, source, PASSWORD)
    admin.execute(
        sql.SQL(damage).format(
            role=sql.Identifier(replication_user(lake, source)),
            publication=sql.Identifier(publication(lake, source)),
            signals=sql.Identifier(signal_table(lake, source)),
        )
    )
    with log_in(postgres, database, lake) as replication, pytest.raises(PostgresNotReady, match=complaint):
        check_replication(replication, lake, source)


def test_an_administrator_is_not_accepted_as_the_replication_user(
    admin: psycopg.Connection, lake: Lake
) -> None:
    apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
    with pytest.raises(PostgresNotReady, match="a connection as postgres"):
        check_replication(admin, lake, postgres_source(lake))


def test_the_password_of_a_user_that_the_lake_file_names_stays_unchanged(
    postgres: PostgresServer, database: str, admin: psycopg.Connection, owner: str
) -> None:
    del owner
    user = f"own_{secrets.token_hex(4)}"
    connection = f'[source.shop.connection]\nhost = "127.0.0.1"\nport = {postgres.port}\nuser = "{user}"\n'
    lake = lake_of('["public.*"]', f'{connection}password_env = "P"\n')
    admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'its own'").format(sql.Identifier(user)))
    try:
        apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)
        own = f"host=127.0.0.1 port={postgres.port} dbname={database} user={user} password='its own'"
        with psycopg.connect(own, autocommit=True) as replication:
            check_replication(replication, lake, postgres_source(lake))
    finally:
        drop_role(admin, user)


def test_the_catalog_is_read_as_it_is(admin: psycopg.Connection) -> None:
    admin.execute(
        """
        CREATE TABLE public.t (
          a int NOT NULL, b text, c int GENERATED ALWAYS AS (a + 1) STORED, gone int, d text[], e int[][],
          f varbit[], g interval[], h bit(4)[],
          i float8[], j bit(900), k int[], l bit(9),
          PRIMARY KEY (a) INCLUDE (b)
        );
        ALTER TABLE public.t DROP COLUMN gone;
        CREATE UNIQUE INDEX ON public.t (b, c);
        CREATE UNIQUE INDEX ON public.t (b) WHERE a > 1;
        CREATE UNIQUE INDEX ON public.t ((b || 'x'));
        CREATE UNLOGGED TABLE public.u (a int);
        CREATE TABLE public.p (a int PRIMARY KEY) PARTITION BY RANGE (a);
        CREATE TABLE public.p1 PARTITION OF public.p FOR VALUES FROM (0) TO (9);
        CREATE VIEW public.v AS SELECT 1;
        """
    )
    tables = {facts.table: facts for facts in read_tables(admin, "nobody")}
    assert set(tables) == {"t", "u", "p", "p1"}
    facts = tables["t"]
    assert facts.columns == ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")
    assert facts.nested_arrays == ("e",)
    assert facts.unsent == ("f", "g")
    assert facts.unreadable == ("h",)
    assert facts.unmarked == ("h", "i", "j")
    assert facts.generated == ("c",)
    assert facts.not_null == {"a"}
    assert facts.primary_key == UniqueKey(frozenset({"a"}), is_primary=True)
    assert {key.columns for key in facts.unique_keys} == {frozenset({"a"}), frozenset({"b", "c"})}
    assert not tables["u"].is_permanent
    assert (tables["p"].is_divided, tables["p1"].is_divided) == (True, False)
    assert (tables["p"].root, tables["p1"].root) == (None, ("public", "p"))


ODD_TABLES = [
    ("a", "ab"),
    ("a", "a_b"),
    ("a", "a%b"),
    ("a", "a.b"),
    ("a", '"ab'),
    ("A", "ab"),
    ("a'b", 'a"b'),
    ("a$", "a\\b"),
    ("a$tributary$b", "ab"),
    ("ł", "é😀"),
]


@pytest.fixture(scope="module")
def odd_tables(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    """A database with unusual table names."""
    name = f"odd_{secrets.token_hex(4)}"
    own = f"host=127.0.0.1 port={postgres.port} user=postgres password={postgres.admin_password}"
    with psycopg.connect(own, autocommit=True, dbname="postgres") as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        with psycopg.connect(own, autocommit=True, dbname=name) as connection:
            for schema, table in ODD_TABLES:
                made = sql.SQL("CREATE SCHEMA IF NOT EXISTS {}; CREATE TABLE {} (id int PRIMARY KEY)")
                connection.execute(made.format(sql.Identifier(schema), sql.Identifier(schema, table)))
            yield connection
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@given(PATTERN_SETS)
@example(TablePatterns.parse(("*.*",)))
@example(TablePatterns.parse(("a.a_b",)))
@example(TablePatterns.parse(("a.a%b",)))
@example(TablePatterns.parse(("a'b.*", "a$.*", "a$tributary$b.*")))
@example(TablePatterns.parse(("a$.a\\b", "a'b.a\"b")))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_only_tables_that_the_patterns_take_are_made_readable(
    odd_tables: psycopg.Connection, patterns: TablePatterns
) -> None:
    lake = lake_of(toml({"x": texts_of(patterns)}).removeprefix('"x" = ').strip())
    source = postgres_source(lake)
    with odd_tables.transaction(force_rollback=True):
        odd_tables.execute(setup_sql(lake, source).encode())
        for schema, table in ODD_TABLES:
            is_readable = odd_tables.execute(
                "SELECT has_schema_privilege(%(role)s, %(schema)s, 'USAGE') AND has_table_privilege("
                "%(role)s, format('%%I.%%I', %(schema)s::text, %(table)s::text), 'SELECT')",
                {"role": replication_user(lake, source), "schema": schema, "table": table},
            ).fetchone()
            assert is_readable == (source.matches(schema, table),)


def texts_of(patterns: TablePatterns) -> list[str]:
    def without_exclamation(pattern: TablePattern) -> str:
        return str(pattern).removeprefix("!")

    return [
        *(without_exclamation(pattern) for pattern in patterns.include),
        *(f"!{without_exclamation(pattern)}" for pattern in patterns.exclude),
    ]
