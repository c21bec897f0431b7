"""A start on one machine handles a second engine like the first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.connect_rest import ConnectorFailed, ConnectRest
from connectors.deployment import ConnectorConfig
from connectors.engines.definitions import TableDefinition
from connectors.engines.engine import Checked, DatabaseNotReady, LeftOut
from connectors.engines.registry import engine_of
from tests.engines.abacus import AbacusEngine, AbacusServer, AbacusSource
from tests.engines.lakes import POSTGRES, lake_with, servers_of
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.remedies import TakeSnapshot, plain_words
from tributary.contract.table_name import TableName
from tributary.local import pipeline
from tributary.local.connector_state import ConnectorKeeper
from tributary.local.databases import DatabaseUnreachable, SourceDatabase, prepare_database
from tributary.local.engine_servers import NoServerHere
from tributary.local.left_out import as_gone, as_records, read_left_out, write_left_out
from tributary.local.source_connector import DatabaseUnknown
from tributary.local.start_plan import start_plan
from tributary.local.startup import Startup
from tributary.local.state import StateFolder

pytestmark = pytest.mark.usefixtures("abacus")


def test_a_second_engine_s_database_needs_no_server_on_this_machine() -> None:
    lake = lake_with()
    steps = {step.name: set(step.after) for step in start_plan(lake, ())}
    servers = {"postgres", "kafka", "s3", "connect"}
    assert steps == {
        "postgres": set(),
        "kafka": set(),
        "s3": set(),
        "connect": {"postgres", "kafka", "s3", "plugins"},
        "database web": {"postgres"},
        "source web": {*servers, "database web"},
        "database counter": set(),
        "source counter": {*servers, "database counter"},
        "bronze": servers,
    }
    again = {step.name: set(step.after) for step in start_plan(lake, [lake.source("counter")])}
    assert again == steps | {"database counter": servers}


def test_a_source_that_needs_a_server_here_is_refused_without_one(tmp_path: Path) -> None:
    lake = lake_with(more="")
    with pytest.raises(NoServerHere, match=r"\[source\.counter\.connection\]"):
        list(start_plan(lake, ()))
    with pytest.raises(NoServerHere, match=r"\[source\.counter\.connection\]"):
        servers_of(lake, tmp_path).deployment  # noqa: B018


def test_a_second_engine_s_database_is_checked_and_prepared_by_the_administrator(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    lake = lake_with()
    found = prepare_database(servers_of(lake, tmp_path).database(lake.source("counter")))
    assert found == Checked(warnings=("a bead is loose", "oil the rods"))
    assert abacus.said == [
        "abbot comes to abacus.example.org:7777",
        "abbot checks shop.counter",
        "abbot prepares beam-of-shop-counter",
        "abbot leaves",
        "counter-shop comes to abacus.example.org:7777",
        "counter-shop leaves",
    ]


def test_without_an_administrator_the_engine_s_script_is_written_and_named(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MONK", "om")
    lake = lake_with('[source.counter.connection]\nhost = "h"\nuser = "monk"\npassword_env = "MONK"\n')
    database = servers_of(lake, tmp_path).database(lake.source("counter"))
    with pytest.raises(DatabaseNotReady, match=f"beam-of-shop-counter.*abacus < {database.script}"):
        prepare_database(database)
    assert database.script.read_text() == "MOUNT beam-of-shop-counter\n"
    abacus.is_prepared = True
    assert prepare_database(database) == Checked(warnings=("a bead is loose",))
    assert not any("prepares" in said for said in abacus.said)


def test_a_refused_connection_is_reported_in_the_engine_s_words(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    abacus.refuses = "the gate is shut"
    lake = lake_with(frame='frame = "left"\n')
    database = servers_of(lake, tmp_path).database(lake.source("counter"))
    told = r"\[source\.counter\], frame left as abbot: .*the gate is shut.*Check host, port and rods"
    with pytest.raises(DatabaseUnreachable, match=told):
        database.connect()


RUST = TableName("counter", "counting", "rust")


@pytest.mark.usefixtures("abacus")
def test_a_check_lists_what_is_wrong_with_the_server_and_with_the_tables_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")

    def refuse(what: str) -> Callable[..., Any]:
        def check(*_: object) -> None:
            raise DatabaseNotReady(what, remedy=f"Mend {what}.")

        return check

    def fail(*_: object) -> None:
        raise BrokenPipeError

    lake = lake_with()
    database = servers_of(lake, tmp_path).database(lake.source("counter"))
    monkeypatch.setattr(AbacusEngine, "check_server", refuse("the frame"))
    monkeypatch.setattr(AbacusEngine, "check_tables", refuse("a bead"))
    with pytest.raises(DatabaseNotReady, match=r"the frame\. Mend the frame\. Also: a bead\. Mend a bead\."):
        prepare_database(database)
    # The server may be of another kind, which does not understand what is asked of its tables.
    monkeypatch.setattr(AbacusEngine, "check_tables", fail)
    with pytest.raises(DatabaseNotReady, match=r"the frame\. Mend the frame\.$"):
        prepare_database(database)


class Connect:
    """A Connect worker and its keeper that record what is done to connectors."""

    def __init__(self, abacus: AbacusServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.known: dict[str, dict[str, str]] = {}
        self.ran: dict[str, ConnectorConfig] = {}
        self.failures: list[str] = []
        self.offset: dict[str, int] | None = {"rod": 1}

        def run(_: ConnectorKeeper, connector: ConnectorConfig, *, recreate: bool) -> bool:  # noqa: ARG001
            self.ran[connector.name] = connector
            abacus.said.append(f"run {connector.name}")
            if "counter" in connector.name and len(self.failures) > 1:
                self.failures.pop(0)
                raise ConnectorFailed("the connector failed", found=self.failures[0])
            return True

        def failure(_: ConnectorKeeper, name: str) -> str | None:  # noqa: ARG001
            return self.failures[0] if self.failures else None

        def remove(_: ConnectorKeeper, name: str) -> None:
            abacus.said.append(f"remove {name}")
            self.known.pop(name, None)

        def forget(_: ConnectorKeeper, connector: ConnectorConfig) -> None:
            abacus.said.append(f"forget {connector.name}")

        monkeypatch.setattr(ConnectRest, "connectors", lambda _: tuple(self.known))
        monkeypatch.setattr(ConnectRest, "config", lambda _, name: self.known.get(name))
        monkeypatch.setattr(ConnectRest, "offset", lambda *_: self.offset)
        monkeypatch.setattr(ConnectorKeeper, "ensure_running", run)
        monkeypatch.setattr(ConnectorKeeper, "failure", failure)
        monkeypatch.setattr(ConnectorKeeper, "remove", remove)
        monkeypatch.setattr(ConnectorKeeper, "forget_offsets", forget)


def started(lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch, *resnapshot: str) -> Any:
    """Return a start of the pipeline without servers, which prepares no database of another engine."""
    for server in ("postgres", "kafka", "s3", "connect"):
        monkeypatch.setattr(pipeline._Start, f"_ensure_{server}", lambda *_: False)
    monkeypatch.setattr(pipeline, "unpack_plugins", lambda _: folder)

    def prepare(database: SourceDatabase) -> Checked:
        return prepare_database(database) if isinstance(database.source, AbacusSource) else Checked()

    monkeypatch.setattr(pipeline, "prepare_database", prepare)
    anew = frozenset(lake.source(name) for name in resnapshot)
    startup = Startup(lambda *_: None, threading.Event())
    start = pipeline._Start(servers_of(lake, folder), (), None, anew, startup, connect_has_died=False)
    start.run()
    return start


def test_a_start_prepares_a_second_engine_s_database_and_runs_its_connector(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    Connect(abacus, monkeypatch)
    start = started(lake_with(), tmp_path, monkeypatch)
    assert {*start.changed} == {"source web", "source counter", "bronze"}
    assert start.warnings == ["a bead is loose", "oil the rods"]
    prepared, ran = "abbot prepares beam-of-shop-counter", "run tributary-shop-counter-debezium"
    assert abacus.said.index(prepared) < abacus.said.index(ran)
    assert not any("forget" in said or "remove" in said for said in abacus.said)


def test_a_table_that_cannot_be_taken_is_left_out_until_it_is_mended(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    connect = Connect(abacus, monkeypatch)
    connector, rust = "tributary-shop-counter-debezium", TableName("counter", "counting", "rust")
    abacus.has_rust = True
    start = started(lake_with(), tmp_path, monkeypatch)
    assert start.found["counter"].untaken == {rust}
    assert connect.ran[connector].config["abacus.skips"] == str(rust)
    abacus.has_rust = False
    start = started(lake_with(), tmp_path, monkeypatch)
    assert "abacus.skips" not in connect.ran[connector].config
    assert start.found["counter"].left_out == ()


def test_a_table_that_was_left_out_and_is_gone_stays_unread_until_it_is_there_again(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log can still have its changes, at which the connector would fail."""
    monkeypatch.setenv("ABBOT", "om")
    connect = Connect(abacus, monkeypatch)
    connector, state = "tributary-shop-counter-debezium", servers_of(lake_with(), tmp_path).state
    problem = DatabaseNotReady("the beads do not slide")
    write_left_out(state, as_records([LeftOut(RUST, (problem,))], plain_words))
    start = started(lake_with(), tmp_path, monkeypatch)
    assert connect.ran[connector].config["abacus.skips"] == str(RUST)
    write_left_out(state, as_gone(start.gone))
    assert read_left_out(state, lake_with()) == {}
    assert started(lake_with(), tmp_path, monkeypatch).gone == {RUST}
    abacus.definitions[RUST] = TableDefinition("rust", "", ())
    assert started(lake_with(), tmp_path, monkeypatch).gone == set()
    assert "abacus.skips" not in connect.ran[connector].config


@pytest.mark.parametrize("failure", ["no rod of counting is called rust", "no rod is called rust"])
def test_a_connector_skips_a_table_that_it_failed_at_and_that_is_gone(
    failure: str, abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    connect = Connect(abacus, monkeypatch)
    connector = "tributary-shop-counter-debezium"
    abacus.definitions[TableName("counter", "counting", "beads")] = TableDefinition("beads", "", ())
    # The next start finds the first failure. The connector then fails at an earlier table, and then runs.
    connect.failures = [failure, "no rod of counting is called nail"]
    start = started(lake_with(), tmp_path, monkeypatch)
    gone = {RUST, TableName("counter", "counting", "nail")}
    assert start.gone == gone
    assert connect.ran[connector].config["abacus.skips"] == ",".join(map(str, sorted(gone)))


def test_a_connector_that_failed_at_a_table_of_the_lake_or_for_another_reason_still_reads_all(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    connect = Connect(abacus, monkeypatch)
    abacus.definitions[RUST] = TableDefinition("rust", "", ())
    for failure in ("no rod of counting is called rust", "no rod is called rust", "a rod broke"):
        connect.failures = [failure, failure]
        with pytest.raises(ConnectorFailed):
            started(lake_with(), tmp_path, monkeypatch)
        assert "abacus.skips" not in connect.ran["tributary-shop-counter-debezium"].config


def test_a_connector_that_has_run_is_not_given_a_database_whose_tables_it_does_not_know(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    connect, name = Connect(abacus, monkeypatch), "tributary-shop-counter-debezium"
    started(lake_with(), tmp_path, monkeypatch)
    connect.known[name] = {**connect.ran[name].config, "abacus.frames": "attic"}
    started(lake_with(), tmp_path, monkeypatch)  # The database has no tables yet.
    abacus.definitions[RUST] = TableDefinition("rust", "", ())
    connect.ran.clear()
    with pytest.raises(
        DatabaseUnknown,
        match=r"\[source\.counter\]\.tables: .*database that was added: found counting, expected databases",
    ) as refused:
        started(lake_with(), tmp_path, monkeypatch)
    assert TakeSnapshot("counter") in refused.value.remedies
    assert name not in connect.ran
    started(lake_with(), tmp_path, monkeypatch, "counter")
    connect.known[name] = {**connect.ran[name].config, "abacus.frames": "attic"}
    connect.offset = None  # It has not begun its snapshot.
    started(lake_with(), tmp_path, monkeypatch)


def test_the_tables_that_a_start_left_out_are_recorded_while_the_lake_file_wants_them(
    tmp_path: Path,
) -> None:
    state, lake = StateFolder(tmp_path), lake_with()
    assert read_left_out(state, lake) == {}
    rust = TableName("counter", "counting", "rust")
    problem = DatabaseNotReady("the beads do not slide", where=str(rust), remedy="Oil it.")
    write_left_out(state, as_records([LeftOut(rust, (problem, problem))], plain_words))
    (found,) = read_left_out(state, lake).values()
    assert (found.name, found.remedies) == (rust, ("", "Oil it."))  # The same remedy is said once.
    assert "the beads do not slide" in found.reasons[0]
    assert read_left_out(state, parse_lake(POSTGRES)) == {}


def test_a_new_snapshot_first_deletes_the_state_in_the_database_and_connect(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    Connect(abacus, monkeypatch)
    started(lake_with(), tmp_path, monkeypatch, "counter")
    connector = "tributary-shop-counter-debezium"
    order = [
        f"remove {connector}",
        "abbot forgets beam-of-shop-counter",
        "abbot prepares beam-of-shop-counter",
        f"forget {connector}",
        f"run {connector}",
    ]
    assert [said for said in abacus.said if said in order] == order


def test_a_source_that_leaves_the_lake_file_is_reported_with_its_remains(
    abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABBOT", "om")
    connect = Connect(abacus, monkeypatch)
    both = lake_with()
    deployment = servers_of(both, tmp_path / "before").deployment
    for source in both.sources:
        connector = engine_of(source).render(both, source, deployment)
        connect.known[connector.name] = dict(connector.config)
    connect.known["somebody-else-s"] = {"connector.class": "org.example.Connector"}
    start = started(parse_lake(POSTGRES), tmp_path, monkeypatch)
    assert "remove somebody-else-s" not in abacus.said
    (warning,) = start.warnings
    assert warning.startswith("tributary-shop-counter-debezium was removed, because its source is no longer")
    assert warning.endswith("Take beam-of-shop-counter off the frame.")
