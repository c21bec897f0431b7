"""The rotation of the connector's password: however it is interrupted, secret and database agree at its end.

The labels of the secret's versions are moto's. The databases are a real PostgreSQL, a real MariaDB, a double
of a SQL Server, and for generated histories a dictionary.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql

from connectors.engines.binlog.preparation import password_statement as of_binlog
from connectors.engines.postgres.names import replication_user
from connectors.engines.postgres.preparation import password_statement as of_postgres
from connectors.engines.sqlserver import session as sqlserver_session
from stacks.database.password_rotation import write_code
from stacks.database.sqlserver.prepared_instance import preparation as sqlserver_preparation
from stacks.functions import rotation
from stacks.functions.rotation import databases
from stacks.functions.rotation.databases import (
    PASSWORD,
    Address,
    LoginRefused,
    NotReached,
    UnfitPassword,
    open_session,
)
from stacks.functions.rotation.main import AGE, UNREAD, NotLetIn, NotThisRotation, Target
from stacks.functions.rotation.secret import CURRENT, PENDING, READ, RotatingSecret, Version
from tests.connectors import conftest as server_fixtures
from tests.postgres_source import postgres_source
from tests.stacks.rotating import (
    ADMIN,
    ADMIN_PASSWORD,
    FIRST,
    STEPS,
    USER,
    Interruption,
    Killed,
    Passwords,
    Rotated,
    refused,
    rotated,
)
from tests.stacks.sqlserver_double import SqlServer
from tributary.artifacts.pip import LAMBDA, fetch_wheels
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.engines.sqlserver import RdsSqlServer, SqlServerSource
from tributary.contract.lake import parse_lake
from tributary.local import mariadb
from tributary.local.mariadb import MariaDbServer
from tributary.local.postgres import PostgresServer

postgres = server_fixtures.postgres
database = server_fixtures.database
admin = server_fixtures.admin
maria = server_fixtures.maria

ADDRESS = Address("mysql", "db.example.org", 3306, "", is_verified=True)
LATE = timedelta(minutes=20)
few = settings(max_examples=40, deadline=None)
"""Each example starts Secrets Manager again, and calls it some fifty times."""


@pytest.fixture
def passwords() -> Passwords:
    return Passwords()


@pytest.fixture
def web(passwords: Passwords) -> Iterator[Rotated]:
    with rotated(ADDRESS, passwords.open) as made:
        yield made


def test_a_rotation_changes_secret_and_database_and_the_connector_reads_it(
    web: Rotated, passwords: Passwords
) -> None:
    token = web.rotate()
    assert web.labels()[CURRENT] == token
    assert web.password(CURRENT) == passwords.known[USER] == web.connect.password != FIRST
    assert (len(web.password(CURRENT)), web.password(CURRENT).isalnum()) == (40, True)
    assert web.connect.restarts == 1
    assert web.is_read
    assert passwords.opened == 0


def test_the_database_has_the_new_password_before_anybody_reads_it(
    web: Rotated, passwords: Passwords
) -> None:
    token = str(uuid.uuid4())
    for step in STEPS[:3]:
        web.step(step, token)
        assert web.labels()[CURRENT] != token
    assert passwords.known[USER] == web.password(PENDING)
    assert web.connect.restarts == 0


@few
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=6), st.integers(0, 4))
def test_repeated_steps_make_one_password_and_one_restart(steps: list[str], done: int) -> None:
    """Secrets Manager repeats a step whose answer it did not get, or the whole rotation."""
    passwords = Passwords()
    with rotated(ADDRESS, passwords.open) as web:
        token = str(uuid.uuid4())
        for step in STEPS[:done]:
            web.step(step, token)
        made = web.labels().get(PENDING)
        for step in steps:
            if STEPS.index(step) <= done:
                web.step(step, token)
                done = max(done, STEPS.index(step) + 1)
        web.rotate(token)
        assert made in (None, token)
        assert set(web.labels().values()) == {token, web.labels()["AWSPREVIOUS"]}
        assert web.password(CURRENT) == passwords.known[USER] == web.connect.password
        assert web.connect.restarts == 1
        assert len(passwords.statements) == 1


@few
@given(st.integers(1, 60), st.booleans(), st.booleans())
def test_a_rotation_that_ends_anywhere_is_finished_by_its_repetition_or_by_the_schedule(
    at: int, is_after: bool, is_repeated: bool
) -> None:
    passwords = Passwords()
    with rotated(ADDRESS, passwords.open) as web:
        web.interruption = Interruption(at, is_after)
        token = str(uuid.uuid4())
        try:
            web.rotate(token)
        except Killed:
            web.interruption = Interruption()
            if is_repeated:
                web.rotate(token)
        web.interruption = Interruption()
        web.look_after(LATE)
        assert web.password(CURRENT) == passwords.known[USER] == web.connect.password
        assert web.is_read
        assert web.connect.restarts <= 2
        assert web.lines[-1][UNREAD] == 0


@few
@given(
    st.lists(
        st.one_of(
            st.sampled_from([*STEPS, "schedule", "deployment", "repeat", "by hand"]),
            st.tuples(st.integers(1, 25), st.booleans()),
        ),
        max_size=15,
    )
)
def test_no_history_leaves_a_password_that_the_database_refuses(history: list[Any]) -> None:
    """Steps in any order and of former rotations, deployments, people, and a function that ends anywhere."""
    passwords = Passwords()
    with rotated(ADDRESS, passwords.open) as web:
        tokens = [str(uuid.uuid4())]
        hand = 0
        for each in history:
            try:
                match each:
                    case (int(at), bool(is_after)):
                        web.interruption = Interruption(at, is_after)
                    case "schedule":
                        web.look_after()
                    case "deployment":
                        passwords.known[USER] = web.password(CURRENT)
                    case "repeat":
                        web.rotate(tokens[0])
                    case "by hand":
                        hand += 1
                        web.put(f"ByHand{hand}")
                    case step:
                        web.step(step, tokens[-1])
                        if step == "finishSecret":
                            tokens.append(str(uuid.uuid4()))
            except Killed:
                web.interruption = Interruption()
            except (NotThisRotation, NotLetIn):
                pass
        web.interruption = Interruption()
        web.look_after(LATE)
        assert web.password(CURRENT) == passwords.known[USER] == web.connect.password
        assert web.is_read
        assert passwords.opened == 0 or any(isinstance(each, tuple) for each in history)


def test_a_late_repetition_of_a_former_rotation_brings_no_old_password_back(
    web: Rotated, passwords: Passwords
) -> None:
    former = web.rotate()
    latest = web.rotate()
    for step in STEPS:
        with pytest.raises(NotThisRotation):
            web.step(step, former)
    assert web.labels()[CURRENT] == latest
    assert passwords.known[USER] == web.password(CURRENT)


def test_a_version_without_a_password_does_not_become_the_current_one(
    web: Rotated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets Manager announces a version before the first step, which moto does not."""
    token, labels = str(uuid.uuid4()), web.labels()
    monkeypatch.setattr(RotatingSecret, "labels", lambda _: {**labels, PENDING: token})
    for step in STEPS[1:]:
        with pytest.raises(NotThisRotation, match="not been made"):
            web.step(step, token)
    monkeypatch.undo()
    assert web.labels() == labels


def test_the_function_refuses_another_secret(web: Rotated) -> None:
    with pytest.raises(NotThisRotation, match="another"):
        web.call({"Step": "setSecret", "SecretId": "another", "ClientRequestToken": "x"})


def test_the_schedule_leaves_a_rotation_alone_that_is_between_two_steps(
    web: Rotated, passwords: Passwords
) -> None:
    token = str(uuid.uuid4())
    for step in STEPS[:2]:
        web.step(step, token)
    web.look_after()
    assert passwords.known[USER] == web.password(PENDING)
    assert web.labels()[CURRENT] != token
    assert web.lines[-1][UNREAD] == 1
    web.step("testSecret", token)
    web.step("finishSecret", token)
    web.look_after()
    assert (web.lines[-1][UNREAD], web.connect.restarts) == (0, 1)


def test_a_password_that_the_database_does_not_take_stays_pending(web: Rotated, passwords: Passwords) -> None:
    token = str(uuid.uuid4())
    web.step("createSecret", token)
    with pytest.raises(NotLetIn):
        web.step("testSecret", token)
    assert passwords.known[USER] == web.password(CURRENT) == FIRST
    web.look_after(LATE)
    assert passwords.known[USER] == web.password(CURRENT) == FIRST


def test_a_deployment_between_test_and_promotion_cannot_bring_the_old_password_back(
    web: Rotated, passwords: Passwords
) -> None:
    token = str(uuid.uuid4())
    for step in STEPS[:3]:
        web.step(step, token)
    passwords.known[USER] = FIRST
    web.step("finishSecret", token)
    assert passwords.known[USER] == web.password(CURRENT) != FIRST


@pytest.mark.parametrize("state", ["CREATING", "UPDATING", "PAUSED", "RESTARTING", "FAILED"])
def test_a_connector_that_does_not_run_is_restarted_as_soon_as_it_does(web: Rotated, state: str) -> None:
    web.connect.state = state
    web.rotate()
    assert web.connect.restarts == 0
    web.look_after()
    assert web.lines[-1][UNREAD] == 1
    web.connect.state = "RUNNING"
    web.look_after()
    assert (web.connect.restarts, web.lines[-1][UNREAD]) == (1, 0)
    web.look_after()
    assert web.connect.restarts == 1


def test_a_refused_restart_does_not_fail_the_rotation_and_is_tried_again(web: Rotated) -> None:
    for _ in range(2):
        web.connect.refusals.append(refused("RestartConnector", "TooManyRequestsException", "later"))
    token = web.rotate()
    assert web.labels()[CURRENT] == token
    web.look_after()
    assert web.lines[-1][UNREAD] == 1
    web.look_after()
    assert (web.connect.restarts, web.lines[-1][UNREAD]) == (1, 0)


def test_a_failed_restart_is_tried_again_and_a_slow_one_is_not(web: Rotated) -> None:
    web.connect.outcomes = ["RESTART_IN_PROGRESS", "RESTART_FAILED"]
    web.rotate()
    assert not web.is_read
    web.connect.outcomes = ["RESTART_IN_PROGRESS"] * 1000
    web.look_after()
    assert web.connect.restarts == 2
    web.look_after()
    assert (web.connect.restarts, web.lines[-1][UNREAD]) == (2, 0)


def test_without_a_connector_the_password_counts_as_read(web: Rotated) -> None:
    web.connect.state = None
    web.rotate()
    assert web.is_read
    web.connect.state = "RUNNING"
    web.look_after()
    assert web.connect.restarts == 0


def test_a_password_that_a_person_puts_into_the_secret_reaches_database_and_connector(
    web: Rotated, passwords: Passwords
) -> None:
    web.put("ByHand0Password")
    web.look_after()
    assert passwords.known[USER] == web.connect.password == "ByHand0Password"
    assert web.is_read


def test_a_password_that_somebody_changed_in_the_database_is_set_back(
    web: Rotated, passwords: Passwords
) -> None:
    passwords.known[USER] = "SomebodyElse"
    web.look_after()
    assert passwords.known[USER] == web.password(CURRENT)


def test_a_password_that_would_need_escapes_is_refused_without_being_told(web: Rotated) -> None:
    web.put("it's")
    with pytest.raises(UnfitPassword) as refusal:
        web.look_after()
    assert "it's" not in str(refusal.value)


def test_the_administrators_own_rotation_delays_this_one(web: Rotated, passwords: Passwords) -> None:
    passwords.known[ADMIN] = "Rotated"

    web.during_sleep = lambda: web.secrets.put_secret_value(
        SecretId=web.admin_secret, SecretString='{"password": "Rotated"}'
    )
    web.rotate()
    assert passwords.known[USER] == web.password(CURRENT) != FIRST
    assert len(web.slept) == 1


def test_a_server_that_never_answers_fails_the_call_after_a_minute(web: Rotated) -> None:
    def open_(*_: Any) -> Any:
        raise NotReached("nobody there")

    web.open = open_
    with pytest.raises(NotReached):
        web.look_after()
    assert sum(web.slept) == pytest.approx(60, abs=10)
    assert web.lines == []


def test_the_metrics_tell_the_age_of_the_password_and_who_has_not_read_it(web: Rotated) -> None:
    web.look_after(timedelta(days=12))
    (line,) = web.lines
    assert (line["Lake"], line["Source"], line[UNREAD]) == ("shop", "web", 0)
    assert line[AGE] == pytest.approx(12, abs=0.01)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Tributary", [["Lake", "Source"]])
    assert {each["Name"] for each in directive["Metrics"]} == {AGE, UNREAD}


def test_no_password_is_printed(web: Rotated, capsys: pytest.CaptureFixture[str]) -> None:
    web.connect.state = "PAUSED"
    seen = [FIRST]
    for _ in range(2):
        web.rotate()
        seen.append(web.password(CURRENT))
    web.put("ByHand0Password")
    web.look_after()
    printed = capsys.readouterr()
    everything = printed.out + printed.err + json.dumps(list(web.lines))
    assert not [each for each in (*seen, "ByHand0Password", ADMIN_PASSWORD) if each in everything]
    version = Version("v", {"password": FIRST}, None)  # type: ignore[arg-type]
    assert FIRST not in repr(version)


def test_the_environment_variable_holds_the_whole_target(web: Rotated) -> None:
    from dataclasses import asdict

    assert Target.from_json(json.dumps(asdict(web.target))) == web.target


# --- real servers


@pytest.fixture
def _without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' servers have no certificates."""
    monkeypatch.setattr(databases, "_tls", lambda _: None)


@pytest.fixture
def _with_the_functions_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for wheel in fetch_wheels(Path(rotation.__path__[0]) / "requirements.txt", LAMBDA):
        if "pg8000" in wheel.name or wheel.name.endswith("-none-any.whl"):
            monkeypatch.setattr(sys, "path", [*sys.path, str(wheel)])


@pytest.fixture
def on_postgres(
    postgres: PostgresServer,
    database: str,
    admin: psycopg.Connection,
    _without_tls: None,
    _with_the_functions_packages: None,
) -> Iterator[Rotated]:
    """A rotation on PostgreSQL, as an administrator who is no superuser."""
    lake = parse_lake(
        f'[lake]\nname = "{database.replace("_", "-")}"\n[source.web]\nengine = "postgres"\n'
        f'database = "{database}"\ntables = ["public.*"]\n'
    )
    source = postgres_source(lake)
    user, owner = replication_user(lake, source), f"{database}_admin"
    admin.execute("ALTER SYSTEM SET password_encryption = 'scram-sha-256'")
    admin.execute(
        sql.SQL("CREATE ROLE {} LOGIN CREATEROLE PASSWORD {}").format(
            sql.Identifier(owner), sql.Literal(ADMIN_PASSWORD)
        )
    )
    with psycopg.connect(
        host="127.0.0.1", port=postgres.port, dbname=database, user=owner, password=ADMIN_PASSWORD
    ) as by_owner:
        by_owner.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(user), sql.Literal(FIRST))
        )
    address = Address("postgres", "127.0.0.1", postgres.port, database, is_verified=False)
    statement = of_postgres(lake, source, PASSWORD)
    with rotated(address, open_session, statement=statement, user=user, admin=owner) as made:
        yield made
    admin.execute(sql.SQL("DROP ROLE {}; DROP ROLE {}").format(sql.Identifier(user), sql.Identifier(owner)))


@pytest.fixture
def on_mariadb(maria: MariaDbServer, _without_tls: None) -> Iterator[Rotated]:
    lake = parse_lake('[lake]\nname = "shop"\n[source.orders]\nengine = "mysql"\ntables = ["shop.*"]')
    (source,) = lake.sources
    assert isinstance(source, BinlogSource)
    statement = of_binlog(lake, source, PASSWORD)
    user = "tributary_shop__orders"
    address = Address("mysql", "127.0.0.1", maria.port, "", is_verified=False)

    def run(text: str) -> None:
        with pymysql.connect(
            host="127.0.0.1", port=maria.port, user=mariadb.ADMIN, password=maria.admin_password
        ) as session:
            session.cursor().execute(text)

    run(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{FIRST}'")
    with rotated(
        address,
        open_session,
        statement=statement,
        user=user,
        admin=mariadb.ADMIN,
        admin_password=maria.admin_password,
    ) as made:
        yield made
    run(f"DROP USER '{user}'@'%'")


@pytest.fixture
def on_sqlserver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rotated]:
    """A rotation on the double of a SQL Server, through the code that calls the driver."""
    lake = parse_lake(
        '[lake]\nname = "shop"\n[source.erp]\nengine = "sqlserver"\ndatabase = "ERP"\ntables = ["dbo.*"]'
    )
    (source,) = lake.sources
    assert isinstance(source, SqlServerSource)
    content = sqlserver_preparation(lake, source, RdsSqlServer())
    server = SqlServer(content)
    server.databases.add("ERP")
    server.logins[content.user] = FIRST
    monkeypatch.setattr(sqlserver_session, "open_session", server.open)
    address = Address("sqlserver", "erp.example.org", 1433, "ERP", is_verified=True)
    with rotated(address, open_session, statement=content.login, user=content.user) as made:
        yield made
    assert server.sessions == 0
    assert {(each["is_encrypted"], str(each["ca_file"])[-7:]) for each in server.opened} == {
        (True, "rds.pem")
    }


SERVERS = [
    pytest.param("on_postgres", marks=pytest.mark.slow),
    pytest.param("on_mariadb", marks=pytest.mark.slow),
    "on_sqlserver",
]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Rotated:
    found: Rotated = request.getfixturevalue(request.param)
    return found


def lets_in(server: Rotated, password: str) -> bool:
    return databases.lets_in(server.open, server.address, server.user, password)


def test_after_a_rotation_the_server_refuses_the_old_password_and_takes_the_new_one(server: Rotated) -> None:
    assert lets_in(server, FIRST)
    former = FIRST
    for _ in range(2):
        server.rotate()
        assert not lets_in(server, former)
        assert lets_in(server, server.password(CURRENT))
        assert server.connect.password == server.password(CURRENT) != former
        former = server.password(CURRENT)
    with pytest.raises(LoginRefused) as refusal:
        server.open(server.address, server.user, FIRST)
    assert FIRST not in str(refusal.value)


@pytest.mark.parametrize("done", range(1, 4))
def test_a_rotation_that_ends_after_a_step_leaves_the_server_usable(server: Rotated, done: int) -> None:
    token = str(uuid.uuid4())
    for step in STEPS[:done]:
        server.step(step, token)
        server.step(step, token)
    server.look_after(LATE)
    assert lets_in(server, server.password(CURRENT))
    assert server.labels()[CURRENT] == token if done > 1 else server.password(CURRENT) == FIRST
    server.rotate(token)
    assert server.labels()[CURRENT] == token
    assert lets_in(server, server.password(CURRENT))
    assert not lets_in(server, FIRST)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["on_postgres", "on_mariadb"])
def test_a_connection_survives_the_change_of_its_password(
    engine: str, request: pytest.FixtureRequest
) -> None:
    server: Rotated = request.getfixturevalue(engine)
    before = server.open(server.address, server.user, FIRST)
    server.rotate()
    before.run("SELECT 1")
    before.close()


@pytest.mark.slow
def test_postgresql_gets_a_verifier_and_no_password(on_postgres: Rotated, admin: psycopg.Connection) -> None:
    on_postgres.rotate()
    query = "SELECT rolpassword FROM pg_authid WHERE rolname = %s"
    (kept,) = admin.execute(query, (on_postgres.user,)).fetchone() or ("",)
    assert kept.startswith("SCRAM-SHA-256$4096:")
    sent: list[str] = []

    class Session:
        def run(self, statement: str) -> None:
            sent.append(statement)

        def close(self) -> None: ...

    databases.change_password(Session(), "postgres", on_postgres.statement, "Plain0Password")
    assert "Plain0Password" not in sent[0]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["on_postgres", "on_mariadb"])
def test_a_refused_statement_is_told_by_its_number_alone(engine: str, request: pytest.FixtureRequest) -> None:
    server: Rotated = request.getfixturevalue(engine)
    session = server.open(server.address, server.user, FIRST)
    with pytest.raises(databases.StatementRefused) as refusal:
        session.run("ALTER SECRET 'Plain0Password'")
    session.close()
    assert "Plain0Password" not in str(refusal.value)
    assert "error" in str(refusal.value)


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
@pytest.mark.usefixtures("_with_the_functions_packages")
def test_a_server_that_is_not_there_is_no_refused_password(engine: str) -> None:
    address = Address(engine, "127.0.0.1", 1, "shop", is_verified=False)
    with pytest.raises(NotReached, match=r"127\.0\.0\.1:1"):
        open_session(address, USER, FIRST)


# --- what is deployed


def _started(folder: Path) -> subprocess.CompletedProcess[str]:
    """Start the function in a process of its own, from a folder with what is deployed."""
    check = (
        "import stacks.functions.rotation.main as m, stacks.functions.rotation.databases as d;"
        "import connectors.engines.sqlserver.session as c;"
        "from stacks.functions.rotation.connector import kafka_connect_client as k;"
        "k().restart_connector;"
        "print(m.__file__, c.__file__, d.ROOTS.is_file())"
    )
    of_folder = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", check],
        cwd=folder,
        env=os.environ | of_folder | {"AWS_DEFAULT_REGION": "eu-west-1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_function_starts_from_what_its_asset_holds(tmp_path: Path) -> None:
    write_code(tmp_path)
    # The wheels are for Lambda's machine. This one has its own driver, outside of the project.
    for wheel in tmp_path.glob("pymssql*"):
        wheel.rename(tmp_path / f"lambda-{wheel.name}")
    ran = _started(tmp_path)
    assert ran.returncode == 0, ran.stderr
    main, session, has_roots = ran.stdout.split()
    assert main.startswith(str(tmp_path))
    assert session.startswith(str(tmp_path))
    assert has_roots == "True"
    assert list(tmp_path.glob("pg8000*"))
    assert list(tmp_path.glob("pymysql*"))
    assert not list((tmp_path / "stacks").rglob("requirements.*"))
    # Lambda's own botocore may be older than RestartConnector, so the function brings MSK Connect's API.
    (model,) = (tmp_path / "stacks").rglob("service-2.json.gz")
    model.write_bytes(b"no model")
    assert "Not a gzipped file" in _started(tmp_path).stderr


def test_the_labels_are_those_of_secrets_manager() -> None:
    assert {CURRENT, PENDING} == {"AWSCURRENT", "AWSPENDING"}
    assert not READ.startswith("AWS")
