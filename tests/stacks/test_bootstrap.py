"""The function that prepares Aurora: its very SQL on a real PostgreSQL, as an owner who is no superuser."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import sql

from connectors.engines.postgres.names import (
    publication,
    replication_role,
    replication_slot,
    replication_user,
    signal_table,
)
from connectors.engines.postgres.preflight import check_replication
from connectors.engines.postgres.preparation import heartbeat_query, setup_sql
from stacks.database.postgres.prepared_database import preparation
from stacks.functions.bootstrap import preparation as function_preparation
from stacks.functions.bootstrap.main import serve
from stacks.functions.bootstrap.preparation import Preparation
from stacks.functions.bootstrap.requests import Services
from stacks.functions.bootstrap.scram import verifier
from tests.connectors import conftest as postgres_fixtures
from tests.postgres_source import postgres_source
from tests.stacks.data_api import DataApiOnPostgres
from tributary.contract.lake import Lake, parse_lake
from tributary.local.postgres import PostgresServer
from tributary.tickit.generator import generate
from tributary.tickit.schema import TABLES

pytestmark = pytest.mark.slow

postgres = postgres_fixtures.postgres
database = postgres_fixtures.database
admin = postgres_fixtures.admin

PASSWORD = "Replication0Password"
CLUSTER = "arn:aws:rds:us-east-1:111122223333:cluster:tributary-shop-web"
SHOP = """
CREATE TABLE public.orders (id int PRIMARY KEY, note text);
CREATE TABLE public."Order Items" (id int PRIMARY KEY);
CREATE TABLE public.unwanted (id int PRIMARY KEY);
INSERT INTO public.orders VALUES (1, 'one');
"""


@dataclass
class Context:
    """Lambda's, of a function that may run for so many more seconds."""

    seconds: float = 900
    log_stream_name: str = "a-log-stream"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


class NoParameters:
    """A cluster's parameter group that takes everything."""

    def modify_db_cluster_parameter_group(self, **_: Any) -> None: ...


@dataclass
class Function:
    """The function, in front of one database."""

    data_api: DataApiOnPostgres
    answers: list[Mapping[str, Any]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    read_password: Callable[[str], str] = lambda _: PASSWORD

    def ask(self, kind: str, content: Preparation, **more: Any) -> Mapping[str, Any]:
        """What CloudFormation is answered."""
        event = {
            "RequestType": kind,
            "ResponseURL": "https://example.org/presigned",
            "StackId": "a-stack",
            "RequestId": "a-request",
            "LogicalResourceId": "WebPrepared",
            "ResourceProperties": properties(content),
            **more,
        }
        serve(event, Context(), self._services)
        return self.answers[-1]

    def refresh(self, content: Preparation) -> None:
        serve(properties(content), Context(), self._services)

    @property
    def _services(self) -> Services:
        def answer(url: str, body: bytes) -> None:
            assert url == "https://example.org/presigned"
            self.answers.append(json.loads(body))

        return Services(self.data_api, NoParameters(), self.read_password, answer, self.slept.append)


def properties(content: Preparation) -> dict[str, str]:
    return {
        "Cluster": CLUSTER,
        "Database": "shop",
        "AdminSecret": "an-admin-secret",
        "ReplicationSecret": "a-replication-secret",
        "ParameterGroup": "parameters",
        "SlotMegabytes": "20480",
        "Preparation": content.to_json(),
    }


@pytest.fixture
def owner(postgres: PostgresServer, database: str, admin: psycopg.Connection) -> Iterator[str]:
    """How Aurora's administrator logs in, who owns the database, may make roles and is no superuser."""
    name = f"admin_{secrets.token_hex(4)}"
    role, rds = sql.Identifier(name), sql.Identifier("rds_replication")
    admin.execute(
        sql.SQL(
            "CREATE ROLE {rds}; CREATE ROLE {role} LOGIN CREATEROLE PASSWORD 'x';"
            "GRANT {rds} TO {role} WITH ADMIN OPTION; GRANT pg_monitor TO {role};"
            "ALTER DATABASE {database} OWNER TO {role}"
        ).format(rds=rds, role=role, database=sql.Identifier(database))
    )
    conninfo = f"host=127.0.0.1 port={postgres.port} dbname={database} user={name} password=x"
    yield conninfo
    admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO postgres").format(sql.Identifier(database)))
    admin.execute(sql.SQL("DROP OWNED BY {0} CASCADE; DROP ROLE {0}, {1}").format(role, rds))


@pytest.fixture
def lake(admin: psycopg.Connection, owner: str) -> Iterator[Lake]:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(SHOP)
    lake = lake_of('["public.*", "!public.unwanted"]')
    yield lake
    drop_role(admin, lake)


@pytest.fixture
def function(owner: str, lake: Lake) -> Function:
    del lake
    return Function(DataApiOnPostgres(owner))


def lake_of(tables: str, name: str | None = None, more: str = "") -> Lake:
    return parse_lake(
        f'[lake]\nname = "{name or "l" + secrets.token_hex(5)}"\n'
        f'[source.shop]\nengine = "postgres"\ndatabase = "shop"\ntables = {tables}\n{more}'
    )


def prepared(lake: Lake, *, has_demo: bool = False) -> Preparation:
    return preparation(lake, postgres_source(lake), has_demo=has_demo)


def drop_role(admin: psycopg.Connection, lake: Lake) -> None:
    role = replication_user(lake, postgres_source(lake))
    if admin.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None:
        admin.execute(sql.SQL("DROP OWNED BY {0} CASCADE; DROP ROLE {0}").format(sql.Identifier(role)))


def log_in(
    postgres: PostgresServer, database: str, lake: Lake, password: str = PASSWORD
) -> psycopg.Connection:
    user = replication_user(lake, postgres_source(lake))
    return psycopg.connect(
        host="127.0.0.1", port=postgres.port, dbname=database, user=user, password=password, autocommit=True
    )


def published(admin: psycopg.Connection, lake: Lake) -> set[str]:
    name = publication(lake, postgres_source(lake))
    query = "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s"
    return {row[0] for row in admin.execute(query, (name,))}


def own_tables(lake: Lake) -> set[str]:
    return {"tributary.heartbeat", f"tributary.{signal_table(lake, postgres_source(lake))}"}


def test_debezium_finds_all_it_needs_in_a_database_that_was_prepared(
    function: Function, lake: Lake, postgres: PostgresServer, database: str, admin: psycopg.Connection
) -> None:
    answer = function.ask("Create", prepared(lake))
    assert answer["Status"] == "SUCCESS", answer["Reason"]
    assert published(admin, lake) == {"public.orders", "public.Order Items", *own_tables(lake)}
    # What a member of rds_replication may do is RDS's own patch of PostgreSQL.
    role = replication_user(lake, postgres_source(lake))
    members = (
        "SELECT pg_has_role(%s, 'rds_replication', 'MEMBER'), rolreplication FROM pg_roles WHERE rolname = %s"
    )
    assert admin.execute(members, (role, role)).fetchone() == (True, False)
    admin.execute(sql.SQL("ALTER ROLE {} REPLICATION").format(sql.Identifier(role)))
    with log_in(postgres, database, lake) as replication:
        check_replication(replication, lake, postgres_source(lake))
        replication.execute(heartbeat_query(lake, postgres_source(lake)).encode())


def test_the_statements_are_those_that_run_locally(function: Function, lake: Lake) -> None:
    function.ask("Create", prepared(lake))
    text = setup_sql(lake, postgres_source(lake))
    first = function.data_api.statements.index(prepared(lake).setup[0])
    run = function.data_api.statements[first : first + len(prepared(lake).setup)]
    assert "\n\n".join(f"{statement};" for statement in run) == text


def test_a_second_and_a_third_time_changes_nothing(
    function: Function, lake: Lake, admin: psycopg.Connection
) -> None:
    states = []
    for kind in ("Create", "Update", "Update"):
        assert function.ask(kind, prepared(lake))["Status"] == "SUCCESS"
        states.append(
            [
                admin.execute(query).fetchall()
                for query in (
                    "SELECT relname, relacl::text FROM pg_class WHERE relnamespace IN "
                    "('public'::regnamespace, 'tributary'::regnamespace) ORDER BY 1",
                    "SELECT nspname, nspacl::text FROM pg_namespace ORDER BY 1",
                    "SELECT defaclrole, defaclacl::text FROM pg_default_acl ORDER BY 1, 2",
                    "SELECT * FROM pg_publication_tables ORDER BY 1, 2, 3",
                    "SELECT rolname, rolreplication, rolcanlogin FROM pg_roles ORDER BY 1",
                )
            ]
        )
    assert states[0] == states[1] == states[2]
    assert function.data_api.open_transactions == 0


def test_tables_that_the_lake_takes_no_more_leave_the_publication(
    function: Function, lake: Lake, admin: psycopg.Connection
) -> None:
    function.ask("Create", prepared(lake))
    smaller = lake_of('["public.orders"]', name=lake.name)
    assert function.ask("Update", prepared(smaller))["Status"] == "SUCCESS"
    assert published(admin, lake) == {"public.orders", *own_tables(lake)}


def test_a_role_that_another_one_follows_goes(
    function: Function, lake: Lake, admin: psycopg.Connection
) -> None:
    function.ask("Create", prepared(lake))
    user = f"debezium_{secrets.token_hex(4)}"
    connection = f'[source.shop.connection]\nhost = "h"\nuser = "{user}"\npassword_env = "P"\n'
    other = lake_of('["public.*", "!public.unwanted"]', lake.name, connection)
    old = {"OldResourceProperties": properties(prepared(lake))}
    try:
        assert function.ask("Update", prepared(other), **old)["Status"] == "SUCCESS"
        roles = admin.execute(
            "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", ([user, prepared(lake).role],)
        )
        assert roles.fetchall() == [(user,)]
        assert published(admin, lake) == {"public.orders", "public.Order Items", *own_tables(lake)}
    finally:
        drop_role(admin, other)


def test_the_password_of_the_secret_is_the_role_s_and_is_never_sent(
    function: Function, lake: Lake, postgres: PostgresServer, database: str
) -> None:
    function.ask("Create", prepared(lake))
    function.read_password = lambda _: "AnotherPassword1"
    function.ask("Update", prepared(lake))
    log_in(postgres, database, lake, "AnotherPassword1").close()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        log_in(postgres, database, lake)
    sent = "\n".join(function.data_api.statements) + json.dumps(function.answers)
    assert PASSWORD not in sent
    assert "AnotherPassword1" not in sent


def test_a_password_that_rotates_during_a_deployment_does_not_come_back(
    function: Function, lake: Lake, postgres: PostgresServer, database: str
) -> None:
    read = iter([PASSWORD, "AnotherPassword1", "AnotherPassword1"])
    function.read_password = lambda _: next(read)
    assert function.ask("Create", prepared(lake))["Status"] == "SUCCESS"
    log_in(postgres, database, lake, "AnotherPassword1").close()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        log_in(postgres, database, lake)


def test_the_verifier_is_the_one_that_postgresql_s_own_client_makes(admin: psycopg.Connection) -> None:
    made = admin.pgconn.encrypt_password(PASSWORD.encode(), b"anybody", b"scram-sha-256").decode()
    salt = made.partition(":")[2].partition("$")[0]
    assert verifier(PASSWORD, base64.b64decode(salt)) == made


def test_what_matches_no_table_yet_is_told(function: Function, lake: Lake) -> None:
    more = lake_of('["public.*", "sales.*", "public.order_?", "!public.unwanted"]', name=lake.name)
    remarks = function.ask("Create", prepared(more))["Data"]["Remarks"]
    assert 'no table matches "sales.*" yet' in remarks
    assert 'no table matches "public.order_?" yet' in remarks
    assert '"public.*"' not in remarks


def test_a_table_that_is_made_later_is_published_by_the_next_look(
    function: Function, lake: Lake, admin: psycopg.Connection, owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = function.ask("Create", prepared(lake))
    assert "a table that is created later is published within a minute" in answer["Data"]["Remarks"]
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.later (id int PRIMARY KEY)")
    assert "public.later" not in published(admin, lake)
    capsys.readouterr()
    function.refresh(prepared(lake))
    assert "public.later" in published(admin, lake)
    assert capsys.readouterr().out == "published from now on: public.later\n"


def test_a_look_at_a_database_in_which_nothing_is_new_is_three_queries(
    function: Function, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    function.ask("Create", prepared(lake))
    capsys.readouterr()
    before = len(function.data_api.statements)
    function.refresh(prepared(lake))
    asked = [prepared(lake).left_out, prepared(lake).unpublished, prepared(lake).readable_parts]
    assert function.data_api.statements[before:] == asked
    assert capsys.readouterr().out == ""


def test_the_right_to_read_a_later_partition_goes_by_the_next_look(
    function: Function, lake: Lake, admin: psycopg.Connection, owner: str
) -> None:
    role = prepared(lake).role
    with psycopg.connect(owner, autocommit=True) as session:
        session.execute(
            "CREATE TABLE public.calls (id int, y int, PRIMARY KEY (id, y)) PARTITION BY RANGE (y)"
        )
        function.ask("Create", prepared(lake))
        session.execute("CREATE TABLE public.calls_1 PARTITION OF public.calls FOR VALUES FROM (1) TO (2)")
        # As the default privileges do in a schema that the lake takes whole.
        session.execute(sql.SQL("GRANT SELECT ON public.calls_1 TO {}").format(sql.Identifier(role)))
    may_read = "SELECT has_table_privilege(%s, 'public.calls_1', 'SELECT')"
    assert admin.execute(may_read, [role]).fetchone() == (True,)
    function.refresh(prepared(lake))
    assert admin.execute(may_read, [role]).fetchone() == (False,)


UNFIT = {
    "keyless": ("CREATE TABLE public.keyless (id int)", "which has no replica identity"),
    "bits": ("CREATE TABLE public.bits (k varbit PRIMARY KEY)", "sends two as the same"),
    "zoned": (
        "CREATE DOMAIN clock AS timetz; CREATE TABLE public.zoned (id int, k clock, PRIMARY KEY (id, k))",
        "sends two as the same",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_table_that_cannot_be_exact_fails_the_deployment(
    function: Function, lake: Lake, admin: psycopg.Connection, owner: str, name: str
) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(UNFIT[name][0].encode())
    answer = function.ask("Create", prepared(lake))
    assert answer["Status"] == "FAILED"
    assert f"public.{name}" in answer["Reason"]
    assert published(admin, lake) == set()
    assert function.data_api.open_transactions == 0
    assert function.slept == []


def test_a_later_table_that_cannot_be_exact_is_left_out_until_it_is_mended_and_stops_no_other(
    function: Function, lake: Lake, admin: psycopg.Connection, owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    function.ask("Create", prepared(lake))
    before = published(admin, lake)
    with psycopg.connect(owner, autocommit=True) as connection:
        for ddl, _ in UNFIT.values():
            connection.execute(ddl.encode())
        connection.execute("CREATE TABLE public.heirs_of (id int PRIMARY KEY)")
        connection.execute("CREATE TABLE public.heir (PRIMARY KEY (id)) INHERITS (public.heirs_of)")
        connection.execute("CREATE TABLE public.parted (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        connection.execute("CREATE TABLE public.part PARTITION OF public.parted DEFAULT")
        connection.execute("ALTER TABLE public.part REPLICA IDENTITY NOTHING")
    for _ in range(2):
        capsys.readouterr()
        function.refresh(prepared(lake))
        told = capsys.readouterr().out
        for name, (_, reason) in UNFIT.items():
            (line,) = [one for one in told.splitlines() if f"left out: public.{name}, " in one]
            assert reason in line
        assert "left out: public.heirs_of, from which other tables inherit" in told
        assert "left out: public.parted, which has no replica identity" in told
        assert published(admin, lake) - before == {"public.heir"}
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("ALTER TABLE public.keyless ADD PRIMARY KEY (id)")
        connection.execute("ALTER TABLE public.bits ALTER k TYPE text")
        connection.execute("ALTER TABLE public.part REPLICA IDENTITY DEFAULT")
    function.refresh(prepared(lake))
    mended = {"public.keyless", "public.bits", "public.parted"}
    assert published(admin, lake) - before == {"public.heir", *mended}


def test_a_table_with_a_lossy_key_is_published_if_the_lake_file_sets_another_one(
    function: Function, lake: Lake, admin: psycopg.Connection, owner: str
) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.bits (k varbit PRIMARY KEY, id int NOT NULL UNIQUE)")
        connection.execute("ALTER TABLE public.bits REPLICA IDENTITY FULL")
    key = f'[table."{postgres_source(lake).name}.public.bits"]\nkey = ["id"]\n'
    found = function.ask("Create", prepared(lake_of('["public.*"]', lake.name, key)))
    assert found["Status"] == "SUCCESS"
    assert "public.bits" in published(admin, lake)


def test_what_was_made_goes_and_the_tables_stay(
    function: Function, lake: Lake, admin: psycopg.Connection
) -> None:
    source = postgres_source(lake)
    function.ask("Create", prepared(lake))
    admin.execute(heartbeat_query(lake, postgres_source(lake)).encode())
    admin.execute(
        sql.SQL("GRANT pg_create_subscription TO CURRENT_USER; ALTER ROLE {} REPLICATION").format(
            sql.Identifier(_admin_of(function))
        )
    )
    admin.execute(
        "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (replication_slot(lake, source),)
    )
    answer = function.ask("Delete", prepared(lake), PhysicalResourceId="it")
    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] == "it"
    for query in (
        "SELECT slot_name FROM pg_replication_slots",
        "SELECT pubname FROM pg_publication",
        f"SELECT rolname FROM pg_roles WHERE rolname = '{replication_role(lake, source)}'",
        "SELECT nspname FROM pg_namespace WHERE nspname = 'tributary'",
    ):
        assert admin.execute(query.encode()).fetchall() == [], query
    assert admin.execute("SELECT note FROM public.orders").fetchall() == [("one",)]
    assert function.ask("Delete", prepared(lake), PhysicalResourceId="it")["Status"] == "SUCCESS"


def test_the_heartbeat_of_another_lake_stays(
    function: Function, lake: Lake, admin: psycopg.Connection
) -> None:
    function.ask("Create", prepared(lake))
    admin.execute(heartbeat_query(lake, postgres_source(lake)).encode())
    admin.execute("INSERT INTO tributary.heartbeat VALUES ('another', 'shop', now())")
    function.ask("Delete", prepared(lake), PhysicalResourceId="it")
    assert admin.execute("SELECT lake FROM tributary.heartbeat").fetchall() == [("another",)]


def test_a_slot_that_is_in_use_is_waited_for_and_then_left(
    function: Function, lake: Lake, monkeypatch: pytest.MonkeyPatch, admin: psycopg.Connection
) -> None:
    function.ask("Create", prepared(lake))
    monkeypatch.setattr(function_preparation, "_slot_is_active", lambda *_: True)
    assert function.ask("Delete", prepared(lake), PhysicalResourceId="it")["Status"] == "SUCCESS"
    assert sum(function.slept) == 60
    assert published(admin, lake) == set()


def test_the_demo_s_tables_are_made_filled_and_published_once(
    function: Function, lake: Lake, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_preparation, "DEMO_SCALE", 0.005)
    for kind in ("Create", "Update"):
        answer = function.ask(kind, prepared(lake, has_demo=True))
        assert answer["Status"] == "SUCCESS", answer["Reason"]
    rows = generate(0.005)
    for table in TABLES:
        query = sql.SQL("SELECT {} FROM {} ORDER BY 1").format(
            sql.SQL(", ").join(
                sql.SQL("preferences::text") if column == "preferences" else sql.Identifier(column)
                for column in table.columns
            ),
            sql.Identifier(table.name),
        )
        stored = admin.execute(query).fetchall()
        assert [tuple(map(_comparable, row)) for row in stored] == [
            tuple(map(_comparable, row)) for row in sorted(rows[table.name])
        ], table.name
        assert f"public.{table.name}" in published(admin, lake)


def _comparable(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value


def _admin_of(function: Function) -> str:
    return function.data_api.conninfo.partition("user=")[2].partition(" ")[0]
