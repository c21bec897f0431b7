"""PostgreSQL's rows pass through the whole pipeline unharmed, even if any of the real servers is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import requests
from confluent_kafka.admin import AdminClient

from connectors.connect_rest import ConnectRest
from connectors.engines.engine import Checked
from connectors.engines.postgres.names import replication_user
from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.postgres.preparation import setup_sql
from tests.local.landed import (
    each_of_kafka,
    last_of_kafka,
    read_bronze,
    read_kafka,
    topic_of,
    wait_until,
    write_kafka,
)
from tests.parameters import first_then_long
from tests.postgres_source import postgres_source
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.patterns import TablePatterns
from tributary.local import postgres
from tributary.local.all_servers import SERVICES_OF_EVERY_LAKE
from tributary.local.databases import DatabaseUnreachable, PasswordMissing, SourceDatabase, prepare_database
from tributary.local.pipeline import RunningPipeline, down, up
from tributary.local.process import read_process
from tributary.local.server_files import read_server_files
from tributary.local.state import PortInUse, StateFolder, choose_ports
from tributary.local.status import read_status

PROJECT = Path(__file__).parents[2]
LAKE = """
[lake]
name = "own"

[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
"""

pytestmark = pytest.mark.slow


def connect(pipeline: RunningPipeline) -> psycopg.Connection:
    source = pipeline.lake.sources[0]
    database = SourceDatabase(pipeline.lake, source, pipeline.state, pipeline.settings)
    session: psycopg.Connection = database.connect()
    return session


@pytest.fixture(scope="module")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateFolder]:
    """A state folder whose servers a test may kill, below a folder that only its owner may enter."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o700)
    state = StateFolder(home / "state")
    try:
        yield state
    finally:
        down(state)
        shutil.rmtree(state.path, ignore_errors=True)


@pytest.fixture
def own(own_state: StateFolder) -> RunningPipeline:
    """A pipeline that runs in addition to the one that all tests share."""
    return up(parse_lake(LAKE), own_state)


def test_every_kind_of_change_reaches_kafka_and_bronze_byte_for_byte(
    jvm: Any, pipeline: RunningPipeline
) -> None:
    long = "".join(map(chr, range(0x4E00, 0x4E00 + 9000)))
    with connect(pipeline) as database:
        database.execute("CREATE TABLE goods (id int PRIMARY KEY, name text, long text, price numeric(8,2))")
        database.execute("INSERT INTO goods VALUES (1, 'one', %s, 1.50), (2, 'two', NULL, NULL)", [long])
        database.execute("UPDATE goods SET price = price + 1 WHERE id = 1")
        database.execute("UPDATE goods SET id = id + 10")
        database.execute("ALTER TABLE goods ADD COLUMN color text")
        database.execute("DELETE FROM goods WHERE id = 11")
        database.execute("TRUNCATE goods")
    read_kafka(pipeline, "goods", at_least=12)  # what the test writes next must not overtake Debezium
    write_kafka(pipeline, "goods", (b"\xff\xfe", b"\x80 not UTF-8"), (None, b"no JSON"), (b"", b""))

    events = read_kafka(pipeline, "goods", at_least=15)

    moves = ["d", None, "c", "d", None, "c"]  # each: a delete, its tombstone, a create
    assert [event.op for event in events] == ["c", "c", "u", *moves, "d", None, "t", None, None, None]
    moved = {
        (event.op, event.key and key_of(event.key), event.moved_to or event.moved_from) for event in events
    }
    assert moved >= {
        ("d", 1, b'{"id":11}'),
        ("c", 11, b'{"id":1}'),
        ("d", 2, b'{"id":12}'),
        ("c", 12, b'{"id":2}'),
    }
    assert read_bronze(jvm, pipeline, "goods", at_least=15) == events


def key_of(key: bytes) -> int | None:
    try:
        return int(json.loads(key)["payload"]["id"])
    except ValueError:
        return None


def test_a_second_up_finds_nothing_to_do(pipeline: RunningPipeline) -> None:
    before = {name: read_process(name, pipeline.state.run) for name in SERVICES_OF_EVERY_LAKE}

    again = up(pipeline.lake, pipeline.state)

    assert again.changed == ()
    assert again.settings == pipeline.settings
    assert {name: read_process(name, pipeline.state.run) for name in SERVICES_OF_EVERY_LAKE} == before


def test_status_shows_every_server_and_connector(pipeline: RunningPipeline) -> None:
    status = read_status(pipeline.state)

    servers = {service.name: service for service in status.services}
    assert status.is_well
    of_every_lake = [servers[name] for name in SERVICES_OF_EVERY_LAKE]
    assert all(server.state == "running" and server.resident_bytes for server in of_every_lake)
    assert servers["kafka"].port == pipeline.settings.ports.kafka
    assert [connector.is_running for connector in status.connectors] == [True, True]


def test_servers_listen_on_the_loopback_interface_only(pipeline: RunningPipeline) -> None:
    for name in SERVICES_OF_EVERY_LAKE:
        record = read_process(name, pipeline.state.run)
        assert record is not None
        listening = [
            connection.laddr
            for connection in psutil.Process(record.pid).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN and connection.laddr
        ]
        assert listening
        assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_no_secret_is_in_a_log_an_argument_or_a_file_that_others_may_read(pipeline: RunningPipeline) -> None:
    secrets = pipeline.settings.secrets
    texts = [secret.get_secret_value() for secret in dict(secrets).values()]
    texts.append(secrets.replication_password("shop").get_secret_value())
    arguments = ""
    for name in SERVICES_OF_EVERY_LAKE:
        record = read_process(name, pipeline.state.run)
        assert record is not None
        arguments += " ".join(psutil.Process(record.pid).cmdline())

    assert not [text for text in texts if text in arguments]
    for path in pipeline.state.path.rglob("*"):
        if path.is_file() and any(text.encode() in path.read_bytes() for text in texts):
            assert path.stat().st_mode & 0o077 == 0, path
            assert path.suffix != ".log"


def test_up_repairs_a_pipeline_whose_servers_were_all_killed(jvm: Any, own: RunningPipeline) -> None:
    with connect(own) as database:
        database.execute("CREATE TABLE visits (id serial PRIMARY KEY, page text)")
        database.execute("INSERT INTO visits (page) VALUES ('before')")
    wait_until(lambda: "before" in pages(own), "event before the end")
    records = [read_process(name, own.state.run) for name in SERVICES_OF_EVERY_LAKE]
    for record in records:
        assert record is not None
        os.kill(record.pid, signal.SIGKILL)
    wait_until(
        lambda: all(read_process(name, own.state.run) is None for name in SERVICES_OF_EVERY_LAKE),
        "end of the killed servers",
    )
    assert not read_status(own.state).is_well

    repaired = up(own.lake, own.state)
    with connect(repaired) as database:
        database.execute("INSERT INTO visits (page) VALUES ('after')")
    wait_until(lambda: "after" in pages(repaired), "event after the repair")

    assert set(SERVICES_OF_EVERY_LAKE) <= set(repaired.changed)
    assert read_status(own.state).is_well
    events = read_kafka(repaired, "visits", at_least=1)
    assert read_bronze(jvm, repaired, "visits", at_least=len(events)) == events


def pages(pipeline: RunningPipeline) -> list[str]:
    """Return the pages in the events of the table `visits`."""
    events = read_kafka(pipeline, "visits", at_least=1)
    return [json.loads(event.value)["payload"]["after"]["page"] for event in events if event.value]


def test_written_rows_survive_down_and_up(jvm: Any, own: RunningPipeline) -> None:
    with connect(own) as database:
        database.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        database.execute("INSERT INTO orders VALUES (1), (2)")
    events = read_kafka(own, "orders", at_least=2)
    landed = read_bronze(jvm, own, "orders", at_least=2)

    stopped = down(own.state)
    assert set(stopped) == set(SERVICES_OF_EVERY_LAKE)
    assert down(own.state) == ()
    again = up(own.lake, own.state)
    with connect(again) as database:
        database.execute("INSERT INTO orders VALUES (3)")

    assert again.settings.secrets == own.settings.secrets
    assert read_kafka(again, "orders", at_least=3)[:2] == events
    assert read_bronze(jvm, again, "orders", at_least=3)[:2] == landed


def test_a_connector_that_is_stopped_or_killed_within_copies_sends_every_row(own: RunningPipeline) -> None:
    """The rows of a COPY share log positions, so a connector that resumes at one must not skip the others."""
    copies, rows = 8, 15_000
    with connect(own) as database:
        database.execute("CREATE TABLE copied (id int PRIMARY KEY, name text)")
        copying = threading.Thread(target=copy_rows, args=(database, copies, rows))
        copying.start()
        try:
            for events in (20_000, 60_000):
                wait_until(partial(has_sent, own, "copied", events), f"{events} records")
                stop_and_resume(own)
            wait_until(partial(has_sent, own, "copied", 90_000), "90,000 records")
            kill(own, "connect")
            up(own.lake, own.state)
        finally:
            copying.join()
        database.execute("INSERT INTO copied VALUES (0, 'the last row')")
        assert_all_were_sent(own, "copied", range(copies * rows + 1), last=0)

        # An update of a key is three records with one offset. Kafka may have only the first at a stop.
        before = last_of_kafka(own, "copied")
        assert before is not None
        database.execute("UPDATE copied SET id = id + 1000000 WHERE id > 90000")
        for events in (20_000, 50_000):
            wait_until(partial(has_sent, own, "copied", before.offset + events), f"{events} records more")
            stop_and_resume(own)
        database.execute("INSERT INTO copied VALUES (-1, 'the very last row')")
        assert_all_were_sent(own, "copied", range(1_090_001, 1_000_001 + copies * rows), last=-1)


def assert_all_were_sent(pipeline: RunningPipeline, table: str, ids: Iterable[int], last: int) -> None:
    wait_until(lambda: last_sent_id(pipeline, table) == last, "last row in the topic", 240)
    sent = {key_of(event.key) for event in each_of_kafka(pipeline, table, at_least=1) if event.key}
    missing = set(ids) - sent
    assert len(missing) == 0, f"{len(missing)} rows, from {min(missing)} to {max(missing)}"


def stop_and_resume(pipeline: RunningPipeline) -> None:
    set_connector_state(pipeline, "stop", "STOPPED")
    set_connector_state(pipeline, "resume", "RUNNING")


def kill(pipeline: RunningPipeline, service: str) -> None:
    record = read_process(service, pipeline.state.run)
    assert record is not None
    process = psutil.Process(record.pid)
    process.kill()
    process.wait(30)


def copy_rows(database: psycopg.Connection, copies: int, rows: int) -> None:
    """Run each COPY as a transaction of its own, with ids that continue from the previous COPY."""
    for number in range(copies):
        with database.cursor().copy("COPY copied FROM STDIN") as copy:
            for id_ in range(number * rows + 1, (number + 1) * rows + 1):
                copy.write_row((id_, f"row {id_}"))


def has_sent(pipeline: RunningPipeline, table: str, events: int) -> bool:
    last = last_of_kafka(pipeline, table)
    return last is not None and last.offset + 1 >= events


def last_sent_id(pipeline: RunningPipeline, table: str) -> int | None:
    last = last_of_kafka(pipeline, table)
    return None if last is None or last.key is None else key_of(last.key)


def set_connector_state(pipeline: RunningPipeline, request: str, state: str) -> None:
    """Ask Connect to `stop` or `resume` the source's connector, and wait until it has done so."""
    name = pipeline.lake.source_names(pipeline.lake.sources[0]).connector
    url = pipeline.settings.connect_url
    requests.put(f"{url}/connectors/{name}/{request}", timeout=60).raise_for_status()
    rest = ConnectRest(url)
    wait_until(lambda: rest.status(name).state == state, f"connector in state {state}")
    wait_until(lambda: bool(rest.status(name).tasks) == (state == "RUNNING"), "change of the tasks")


@pytest.mark.parametrize(
    "moment", first_then_long(["connect ready", "postgres starting", "kafka ready", "source shop starting"])
)
def test_an_interrupted_start_leaves_no_process_behind(tmp_path: Path, moment: str) -> None:
    (tmp_path / "lake.toml").write_text(LAKE)
    starter = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from pathlib import Path\n"
            "from tributary.contract.lake import read_lake\n"
            "from tributary.local.pipeline import up\n"
            "from tributary.local.state import StateFolder\n"
            "def show(name, state, seconds): print(name, state, flush=True)\n"
            f"folder = Path({str(tmp_path)!r})\n"
            "up(read_lake(folder / 'lake.toml'), StateFolder(folder / 'state'), show)\n",
        ],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert starter.stdout is not None
    try:
        for line in starter.stdout:
            if line.strip() == moment:
                os.killpg(starter.pid, signal.SIGINT)
        _, errors = starter.communicate(timeout=600)
    finally:
        down(StateFolder(tmp_path / "state"))

    assert errors.strip().endswith("KeyboardInterrupt")
    assert starter.returncode != 0
    assert list((tmp_path / "state" / "run").glob("*.json")) == []
    assert [process for process in psutil.process_iter() if mentions(process, tmp_path)] == []


def mentions(process: psutil.Process, folder: Path) -> bool:
    try:
        return any(str(folder) in argument for argument in process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def test_a_fixed_port_in_use_is_reported_before_anything_is_started(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = listener.getsockname()[1]
        lake = parse_lake(f"{LAKE}\n[local]\nkafka_port = {taken}\n")

        with pytest.raises(PortInUse, match=rf"\[local\]\.kafka_port: port {taken}"):
            up(lake, state)

    assert not [service for service in read_status(state).services if service.state == "running"]


@pytest.fixture(scope="module")
def users_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.PostgresServer]:
    """A user's PostgreSQL that nobody has prepared: wal_level is still replica."""
    folder = tmp_path_factory.mktemp("users-postgres")
    server = postgres.PostgresServer(
        binaries=read_server_files().postgres,
        folder=folder / "postgres",
        log=folder / "postgres.log",
        run=folder / "run",
        port=choose_ports({}, None, frozenset()).postgres,
        admin_password="chosen by the user",
    )
    patch = pytest.MonkeyPatch()
    patch.setitem(postgres._SETTINGS, "wal_level", "replica")
    try:
        server.start(threading.Event())
        patch.undo()
        with postgres.connect_as_admin(server) as admin:
            postgres.create_database(admin, "crm")
        with postgres.connect_as_admin(server, "crm") as admin:
            admin.execute("CREATE TABLE contacts (id int PRIMARY KEY, name text)")
            admin.execute("INSERT INTO contacts VALUES (1, 'Ada')")
        yield server
    finally:
        patch.undo()
        server.stop(server.run)


def users_lake(server: postgres.PostgresServer, more: str = "") -> Lake:
    return parse_lake(
        f"""
        [lake]
        name = "own"

        [source.crm]
        engine = "postgres"
        database = "crm"
        tables = ["public.*"]

        [source.crm.connection]
        host = "127.0.0.1"
        port = {server.port}
        sslmode = "disable"
        {more or 'admin_user = "postgres"'}
        {"" if more else 'admin_password_env = "CRM_ADMIN_PASSWORD"'}
        """
    )


def users_database(lake: Lake, own: RunningPipeline) -> SourceDatabase:
    return SourceDatabase(lake, lake.sources[0], own.state, own.settings)


def test_a_missing_or_wrong_password_of_the_users_database_is_reported_with_its_entry(
    own: RunningPipeline, users_server: postgres.PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = users_database(users_lake(users_server), own)

    monkeypatch.delenv("CRM_ADMIN_PASSWORD", raising=False)
    with pytest.raises(PasswordMissing, match=r"\[source\.crm\.connection\]\.admin_password_env"):
        prepare_database(database)
    monkeypatch.setenv("CRM_ADMIN_PASSWORD", "a wrong guess")
    with pytest.raises(DatabaseUnreachable, match="password authentication failed") as failure:
        prepare_database(database)
    assert "a wrong guess" not in str(failure.value)


def test_a_users_database_is_refused_until_its_wal_level_is_logical_and_then_read(
    own_state: StateFolder, users_server: postgres.PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = users_lake(users_server)
    monkeypatch.setenv("CRM_ADMIN_PASSWORD", "chosen by the user")
    with pytest.raises(PostgresNotReady, match="found wal_level = replica, expected wal_level = logical"):
        up(lake, own_state)

    assert users_server.stop(users_server.run)
    users_server.start(threading.Event())
    pipeline = up(lake, own_state)

    events = read_kafka(pipeline, "contacts", at_least=1)
    assert [event.op for event in events] == ["r"]
    assert b'"name":"Ada"' in (events[0].value or b"")
    # A source that has left the lake file is no longer read. The warning names what remains in its database.
    assert any("tributary_own__shop" in warning for warning in pipeline.warnings)
    assert [connector.name for connector in read_status(own_state).connectors] == [
        pipeline.lake.names.bronze_connector,
        pipeline.lake.source_names(pipeline.lake.sources[0]).connector,
    ]


def test_a_first_snapshot_passes_over_tables_that_the_connector_may_not_read(
    own: RunningPipeline, users_server: postgres.PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = users_lake(users_server)
    role = replication_user(lake, postgres_source(lake))
    monkeypatch.setenv("CRM_ADMIN_PASSWORD", "chosen by the user")
    users_server.stop(users_server.run)
    users_server.start(threading.Event())
    prepare_database(users_database(lake, own))
    with postgres.connect_as_admin(users_server, "crm") as admin:
        admin.execute(
            "CREATE TABLE calls (id int, y int, PRIMARY KEY (id, y)) PARTITION BY RANGE (y);"
            "CREATE TABLE calls_1 PARTITION OF calls FOR VALUES FROM (1) TO (2);"
            "INSERT INTO calls VALUES (1, 1);"
            # In the order of their names, it is the last table of the snapshot.
            "CREATE TABLE zones (id int PRIMARY KEY);"
            "INSERT INTO zones VALUES (1);"
        )
        may_read = admin.execute("SELECT has_table_privilege(%s, 'calls_1', 'SELECT')", [role]).fetchone()
        assert may_read == (True,), "so only another preparation can take this right away"
    # A template is written before anybody has seen the database.
    without = TablePatterns.debezium_regex_without
    monkeypatch.setattr(TablePatterns, "debezium_regex_without", lambda patterns, _: without(patterns, ()))

    pipeline = up(lake, own.state, resnapshot=lake.sources)

    wait_until(
        lambda: "r" in [event.op for event in read_kafka(pipeline, "zones", at_least=1)], "the whole snapshot"
    )
    assert "r" in [event.op for event in read_kafka(pipeline, "calls", at_least=1)]
    assert all(connector.is_running for connector in read_status(own.state).connectors)
    topics = AdminClient({"bootstrap.servers": pipeline.settings.kafka_bootstrap}).list_topics().topics
    assert topic_of(pipeline, "calls_1") not in topics
    with postgres.connect_as_admin(users_server, "crm") as admin:
        admin.execute("DROP TABLE calls, zones")


def test_without_an_administrator_the_sql_is_written_to_a_named_file(
    own: RunningPipeline, users_server: postgres.PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = users_lake(users_server, 'user = "reader"\npassword_env = "CRM_READER_PASSWORD"')
    database = users_database(lake, own)
    monkeypatch.setenv("CRM_READER_PASSWORD", "told to the administrator")
    with postgres.connect_as_admin(users_server, "crm") as admin:
        postgres.create_login(admin, "reader", "told to the administrator")

    with pytest.raises(PostgresNotReady, match=f"psql -f {database.script}"):
        prepare_database(database)
    with postgres.connect_as_admin(users_server, "crm") as admin:
        sql = setup_sql(lake, postgres_source(lake))
        assert sql in database.script.read_text()  # the script also has a command that only psql understands
        admin.execute(sql.encode())
    assert prepare_database(database) == Checked()
