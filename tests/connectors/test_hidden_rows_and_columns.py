"""A database is prepared so that hidden rows never leave it, and a wrong entry is refused."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from connectors.engines.binlog import catalog
from connectors.engines.binlog import preflight as binlog
from connectors.engines.definitions import SilentChanges, silent_changes
from connectors.engines.engine import NotReadable
from connectors.engines.mysql.engine import MySqlEngine
from connectors.engines.postgres.definitions import read_definitions
from connectors.engines.postgres.names import publication, replication_user
from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.postgres.preflight import ServerFacts, check_replication, check_server
from connectors.engines.postgres.preparation import PostgresSetupFailed, apply_postgres_setup, signals_of
from connectors.engines.postgres.signals import ask_for_snapshot
from connectors.engines.postgres.table_check import judge_tables
from tests.connectors.test_postgres_check import ORDERS, SERVER
from tests.connectors.test_postgres_setup import PASSWORD, drop_role, log_in, own_tables, published
from tests.postgres_source import postgres_source
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake, LakeFileError, parse_lake
from tributary.contract.online_snapshot import Request
from tributary.contract.table_name import TableName
from tributary.local.postgres import PostgresServer

NAME = f"l{secrets.token_hex(5)}"
TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, country text NOT NULL, note text);
CREATE TABLE others (id int PRIMARY KEY);
CREATE TABLE parts (id int, region text, note text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE parts_de PARTITION OF parts FOR VALUES IN ('DE');
CREATE TABLE parts_fr PARTITION OF parts FOR VALUES IN ('FR');
"""


def lake_of(entries: str = "", tables: str = '["public.*"]') -> Lake:
    return parse_lake(
        f'[lake]\nname = "{NAME}"\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\n'
        f'tables = {tables}\n[table."shop.public.customers"]\n{entries}'
    )


def prepare(admin: psycopg.Connection, lake: Lake) -> tuple[str, ...]:
    return apply_postgres_setup(admin, lake, postgres_source(lake), PASSWORD)


def filters(admin: psycopg.Connection, lake: Lake) -> dict[str, str | None]:
    rows = admin.execute(
        "SELECT tablename, rowfilter FROM pg_publication_tables WHERE pubname = %s AND schemaname = 'public'",
        (publication(lake, postgres_source(lake)),),
    )
    return dict(rows.fetchall())


@pytest.fixture
def shop(admin: psycopg.Connection) -> Iterator[psycopg.Connection]:
    admin.execute(TABLES.encode())
    yield admin
    drop_role(admin, replication_user(lake_of(), postgres_source(lake_of())))


@pytest.mark.slow
def test_only_the_rows_of_the_filter_are_published_and_all_other_tables_whole(
    postgres: PostgresServer, database: str, shop: psycopg.Connection
) -> None:
    parts = {TableName("shop", "public", name) for name in ("parts_de", "parts_fr")}
    prepare(shop, lake_of())
    lake = lake_of("rows = \"country = 'DE' AND id > 0\"")
    shop.execute("ALTER TABLE customers REPLICA IDENTITY FULL")
    with log_in(postgres, database, lake) as user, pytest.raises(PostgresNotReady, match="other row filters"):
        check_replication(user, lake, postgres_source(lake), parts)

    prepare(shop, lake)
    prepare(shop, lake)
    assert published(shop, lake) == {"public.customers", "public.others", "public.parts", *own_tables(lake)}
    assert filters(shop, lake) == {
        "customers": "((country = 'DE'::text) AND (id > 0))",
        "others": None,
        "parts": None,
    }
    with log_in(postgres, database, lake) as user:
        check_replication(user, lake, postgres_source(lake), parts)
        with pytest.raises(PostgresNotReady, match="other row filters"):
            check_replication(user, lake_of(), postgres_source(lake_of()), parts)
    shop.execute("INSERT INTO customers VALUES (1, 'DE'), (2, 'FR'); UPDATE customers SET note = country")

    prepare(shop, lake_of())
    assert set(filters(shop, lake).values()) == {None}


@pytest.mark.slow
def test_no_row_of_a_table_that_is_created_later_passes_its_filter_before_it_has_one(
    shop: psycopg.Connection,
) -> None:
    lake = lake_of("rows = \"country = 'DE'\"")
    shop.execute("DROP TABLE customers")
    prepare(shop, lake)
    shop.execute("CREATE TABLE customers (id int PRIMARY KEY, country text NOT NULL)")
    shop.execute("ALTER TABLE customers REPLICA IDENTITY FULL")
    assert filters(shop, lake).keys() == {"others", "parts"}
    prepare(shop, lake)
    assert filters(shop, lake) == {"customers": "(country = 'DE'::text)", "others": None, "parts": None}


@pytest.mark.slow
def test_the_administrators_sql_refuses_columns_that_do_not_exist(shop: psycopg.Connection) -> None:
    """A deployment runs it, too, without the check of the tables."""
    prepare(shop, lake_of('leave_out = ["note", "gone?"]'))
    with pytest.raises(PostgresSetupFailed, match=r'namely "Note" of public.customers'):
        prepare(shop, lake_of('leave_out = ["Note"]'))
    name = TableName("shop", "public", "customers")
    lake = lake_of('mask = ["nte"]')
    with pytest.raises(PostgresSetupFailed, match=r"namely nte"):
        prepare(shop, lake)
    apply_postgres_setup(shop, lake, postgres_source(lake), PASSWORD, [name])  # The table is not taken.


@pytest.mark.slow
def test_a_process_with_an_older_lake_file_does_not_ask_for_filtered_rows(shop: psycopg.Connection) -> None:
    shop.execute("ALTER TABLE customers REPLICA IDENTITY FULL")
    older, lake = lake_of(), lake_of("rows = \"country = 'DE'\"")
    request = Request("r1", TableName("shop", "public", "customers"), ("asked",), 0, "id > 5")
    prepare(shop, lake)
    with pytest.raises(NotReadable, match="other row filters"):
        ask_for_snapshot(shop, older, postgres_source(older), request)
    ask_for_snapshot(shop, lake, postgres_source(lake), request)

    asked = shop.execute(f"SELECT data FROM {signals_of(lake, postgres_source(lake))}".encode()).fetchall()
    assert [json.loads(row[0])["additional-conditions"] for row in asked] == [
        [{"data-collection": ".*", "filter": "(id > 5) AND (country = 'DE')"}]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ("country = 'DE'", "country of public.customers"),
        ("id > 1 AND note IS NULL", "note of public.customers"),
        ("no_such_column", 'column "no_such_column" does not exist'),
        ("random() > 1", "invalid publication WHERE expression"),
        ("((country", "syntax error"),
    ],
)
def test_a_filter_that_would_break_the_application_changes_nothing(
    shop: psycopg.Connection, rows: str, found: str
) -> None:
    prepare(shop, lake_of())
    lake = lake_of(f'rows = "{rows}"')
    with pytest.raises(PostgresSetupFailed) as error:
        prepare(shop, lake)
    assert found in f"{error.value} {error.value.__cause__}"
    assert set(filters(shop, lake).values()) == {None}
    shop.execute("INSERT INTO customers VALUES (1, 'DE'); UPDATE customers SET country = 'FR'")


@pytest.mark.slow
def test_a_filter_of_a_partitioned_table_needs_the_column_in_each_replica_identity(
    shop: psycopg.Connection,
) -> None:
    lake = parse_lake(
        f'[lake]\nname = "{NAME}"\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\n'
        f'tables = ["public.*"]\n[table."shop.public.parts"]\nrows = "region = \'DE\'"'
    )
    prepare(shop, lake)
    assert filters(shop, lake)["parts"] == "(region = 'DE'::text)"
    shop.execute("INSERT INTO parts VALUES (1, 'DE'), (2, 'FR'); UPDATE parts SET note = 'x'")
    noted = parse_lake(
        f'[lake]\nname = "{NAME}"\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\n'
        f'tables = ["public.*"]\n[table."shop.public.parts"]\nrows = "note IS NULL"'
    )
    shop.execute("ALTER TABLE parts REPLICA IDENTITY FULL; ALTER TABLE parts_de REPLICA IDENTITY FULL")
    with pytest.raises(PostgresSetupFailed, match=r"note of public\.parts_fr"):
        prepare(shop, noted)


@pytest.mark.slow
def test_an_old_server_refuses_a_filter(shop: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of('rows = "id > 1"')
    check_server(shop, lake, postgres_source(lake))

    def old(*_: object) -> ServerFacts:
        return replace(SERVER, version=14, release="14.9")

    monkeypatch.setattr("connectors.engines.postgres.preflight._read_server", old)
    check_server(shop, lake_of(), postgres_source(lake_of()))
    with pytest.raises(PostgresNotReady, match=r"found PostgreSQL 14\.9, expected PostgreSQL 15"):
        check_server(shop, lake, postgres_source(lake))


@pytest.mark.slow
def test_columns_that_are_left_out_are_no_part_of_a_definition(shop: psycopg.Connection) -> None:
    def look(entries: str) -> tuple[TableName, object]:
        lake = lake_of(entries)
        name = TableName("shop", "public", "customers")
        return name, read_definitions(shop, lake, postgres_source(lake))[name]

    left_out = 'leave_out = ["note"]'
    _, before = look(left_out)
    shop.execute(
        "ALTER TABLE customers DROP COLUMN note; ALTER TABLE customers ADD COLUMN note int DEFAULT 7"
    )
    _, after = look(left_out)
    assert silent_changes(before, after) is None  # type: ignore[arg-type]

    for entries in ("", 'mask = ["note"]', f'{left_out}\nrows = "id > 1"'):
        _, other = look(entries)
        changes = silent_changes(before, other)  # type: ignore[arg-type]
        assert changes is not None
        assert "the lake file hides other columns or rows of it now" in changes.reasons
        assert isinstance(changes, SilentChanges)
        assert changes.condition is None


@pytest.mark.parametrize("way", ["leave_out", "mask", "hash"])
def test_a_table_is_left_out_if_its_hidden_columns_are_its_key_or_not_there(way: str) -> None:
    def problems(columns: str, table: str = "orders") -> str:
        lake = parse_lake(
            '[lake]\nname = "shop"\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\n'
            f'tables = ["public.*"]\n[table."shop.public.{table}"]\n{way} = {columns}'
        )
        found = judge_tables(lake, postgres_source(lake), [ORDERS])
        return " ".join(str(problem) for each in found.left_out for problem in each.problems)

    assert not problems('["note", "region"]')
    assert not problems('["note?", "gone?"]')
    assert "the key column id" in problems('["id"]')
    assert "the key column id" in problems('["id?"]')
    missing = problems('["Note"]')
    assert "found Note, expected one of id, number, region, note" in missing
    assert '"Note?"' in missing


@pytest.mark.parametrize("way", ["leave_out", "mask", "hash"])
def test_the_same_holds_for_mysql(way: str) -> None:
    facts = catalog.TableFacts(
        "shop",
        "orders",
        engine="InnoDB",
        types={"id": "int", "note": "text", "odd-name": "int"},
        not_null=frozenset({"id"}),
        primary_key=frozenset({"id"}),
        unique_keys=(frozenset({"id"}),),
    )

    def problems(columns: str) -> str:
        lake = parse_lake(
            '[lake]\nname = "shop"\n[source.shop]\nengine = "mysql"\ntables = ["shop.*"]\n'
            '[table."shop.shop.orders"]\nleave_out = ["odd-name"]\n'.replace(
                "leave_out", "leave_out" if way != "leave_out" else "# "
            )
            + f"{way} = {columns}"
        )
        (source,) = lake.sources
        assert isinstance(source, BinlogSource)
        server = catalog.ServerFacts("9.7.4", {})
        found = binlog.judge_tables(lake, source, [facts], server, MySqlEngine.rules)
        return " ".join(str(problem) for each in found.left_out for problem in each.problems)

    more = ', "odd-name"' if way == "leave_out" else ""
    assert not problems(f'["note"{more}]')
    assert "the key column id" in problems(f'["id"{more}]')
    assert "found mail" in problems(f'["mail"{more}]')


@pytest.mark.parametrize("engine", ["mysql", "mariadb"])
def test_only_postgres_filters_rows(engine: str) -> None:
    with pytest.raises(LakeFileError, match="an engine that can filter the rows that it sends: postgres"):
        parse_lake(
            f'[lake]\nname = "shop"\n[source.shop]\nengine = "{engine}"\ntables = ["shop.*"]\n'
            '[table."shop.shop.orders"]\nrows = "id > 1"'
        )
    with pytest.raises(LakeFileError, match="letters, digits and underscores"):
        parse_lake(
            '[lake]\nname = "shop"\n[source.shop]\nengine = "postgres"\ndatabase = "d"\n'
            'tables = ["public.*"]\n[table."shop.public.an order"]\nrows = "id > 1"'
        )
