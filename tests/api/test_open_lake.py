"""A lake is opened and read from Python: on this machine, and on AWS with the user's own credentials."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import boto3
import duckdb
import pymysql
import pytest
from moto import mock_aws
from pyspark.sql import SparkSession

import tributary
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import last_commit
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import OffsetRange
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.aws_double import running_moto
from tests.browser.chromium import chromium
from tests.cli.deployed import ACCOUNT, ITEMS, LAKE, NAMES, REGION, make_stack
from tests.console.pages import ask
from tests.console.walk import Walk, served
from tests.ports import free_port
from tests.spark_app.debezium import TOPIC, SourceTable, State, event_row
from tests.spark_app.memory_source import MemorySource
from tributary.api.lake_files import AwsFiles
from tributary.aws.session import Credentials
from tributary.aws.stack_outputs import NotDeployed
from tributary.cli import main
from tributary.contract.aws_names import BucketKind, Output
from tributary.contract.lake import TablePolicy, parse_lake
from tributary.local import s3
from tributary.local.running import PipelineDown
from tributary.local.server_files import read_server_files
from tributary.local.servers import Servers
from tributary.local.state import StateFolder, choose_settings

PROJECT = Path(__file__).parents[2]
LIGHT = """
import sys, tributary
heavy = {"boto3", "duckdb", "pandas", "psutil", "pyarrow", "pydantic", "pyspark"} & sys.modules.keys()
assert not heavy, heavy
assert set(tributary.__all__) <= set(dir(tributary))
for name in tributary.__all__:
    assert getattr(tributary, name).__name__ == name
assert "boto3" not in sys.modules and "pyspark" not in sys.modules
"""


@dataclass(frozen=True)
class Written:
    """A lake of one table, `things`, on an S3 server. `states` are its rows after each commit, by instant."""

    lake_file: Path
    state: Path
    server: s3.S3Server
    rows: State
    states: dict[str, State]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    folder = tmp_path_factory.mktemp("lake")
    lake_file = folder / "lake.toml"
    lake_file.write_text(f'{LAKE}[table."shop.public.things"]\nstorage = "copy_on_write"\ndeletes = "soft"\n')
    lake, state = parse_lake(lake_file.read_text()), StateFolder(folder / "state")
    state.create()
    settings = choose_settings(state, lake.name, {}, frozenset())
    state.write_settings(settings)
    server = Servers(lake, state, settings, read_server_files()).s3
    buckets = server.folder / "buckets"
    things, states = _write_things(spark, buckets / "shop-silver", buckets / "shop-quarantine")
    for kind in ("silver", "quarantine"):
        shutil.copytree(
            buckets / f"shop-{kind}", buckets / NAMES.bucket(kind, ACCOUNT, REGION), dirs_exist_ok=True
        )
    try:
        server.start(threading.Event())
        yield Written(lake_file, state.path, server, things.rows, states)
    finally:
        server.stop(state.run)


def _write_things(
    spark: SparkSession, silver: Path, quarantine: Path
) -> tuple[SourceTable, dict[str, State]]:
    """Write three commits: two rows; a changed, a deleted and a new row; and an event that cannot be read."""
    things, states = SourceTable(), dict[str, State]()
    path = Path("shop", "public", "things")
    hudi = HudiTable(
        spark, str(silver / path), "things", TablePolicy(storage="copy_on_write", deletes="soft")
    )
    first = 0
    for number in range(3):
        things.begin()
        match number:
            case 0:
                things.insert(1, "one", None)
                things.insert(2, "two", None)
            case 1:
                things.update(1, "uno", None, body_is_unchanged=False)
                things.delete(2)
                things.insert(3, "three", None)
            case 2:
                things.send_garbage(b"\xff")
        things.commit()
        rows = [event_row(event, offset) for offset, event in enumerate(things.events)]
        table = TableIngest(
            "things", TOPIC, MemorySource(spark, rows), hudi, str(quarantine / path), TopicForm(PostgresLog())
        )
        table.recover()
        table.apply((OffsetRange(0, first, len(rows)),))
        first = len(rows)
        commit = last_commit(hudi)
        assert commit is not None
        states[commit.instant] = dict(things.rows)
    return things, states


@pytest.fixture
def lake(written: Written) -> tributary.OpenLake:
    return tributary.open_lake(written.lake_file, state=written.state)


@pytest.fixture
def on_aws(written: Written, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Moto's stacks, and an S3 server that verifies signatures and that the user's AWS settings name."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", written.server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", written.server.secret_key)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", written.server.endpoint)
    with mock_aws(config={"core": {"mock_credentials": False}}):
        yield


def _deploy() -> None:
    kinds: dict[str, BucketKind] = {
        Output.SILVER: "silver",
        Output.QUARANTINE: "quarantine",
        Output.BRONZE: "bronze",
    }
    make_stack("lake", {key: f"s3://{NAMES.bucket(kind, ACCOUNT, REGION)}" for key, kind in kinds.items()})


def _names(rows: State) -> dict[int, object]:
    return {key: row["name"] for key, row in rows.items()}


def _kept(table: tributary.Table | tributary.TableAsOf) -> dict[int, object]:
    """Return the names of the rows that are not deleted."""
    return {row["id"]: row["name"] for row in table.arrow().to_pylist() if not row["_deleted"]}


def test_importing_tributary_is_cheap_and_gives_every_name_that_it_promises() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True, cwd=PROJECT)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tributary.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_tables_are_listed_with_their_files_and_last_commits(
    written: Written, lake: tributary.OpenLake
) -> None:
    (summary,) = lake.tables()
    assert str(summary.name) == "shop.public.things"
    assert summary.uri == "s3://shop-silver/shop/public/things"
    assert (summary.storage, summary.deletes) == ("copy_on_write", "soft")
    assert summary.last_commit is not None
    assert summary.last_commit.instant == max(written.states)
    assert summary.table == lake.table("things") == lake.table("shop.public.things")
    assert summary.table.count() == len(written.rows)


def test_rows_are_the_same_as_arrow_pandas_and_duckdb(written: Written, lake: tributary.OpenLake) -> None:
    things = lake.table("public.things")
    assert _kept(things) == _names(written.rows)
    frame = things.pandas()
    assert dict(zip(frame["id"], frame["name"], strict=True)) == {**_names(written.rows), 2: "two"}
    with duckdb.connect() as connection:
        relation = things.duckdb(connection).filter("NOT _deleted").project("id, name").order("id")
        assert relation.fetchall() == sorted(_names(written.rows).items())
    assert things.duckdb().count("*").fetchall() == [(3,)]


def test_a_client_of_mysql_reads_the_tables_as_they_are_and_as_they_were(written: Written) -> None:
    port = free_port()
    command = [str(Path(sys.executable).with_name("tributary")), "sql-server", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--lake", str(written.lake_file), "--state", str(written.state)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert f"127.0.0.1:{port}" in process.stdout.readline()
        options = written.state / "sql-server.cnf"
        assert str(options) in process.stdout.readline()
        with pymysql.connect(read_default_file=str(options)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT name FROM `shop.public`.things WHERE id = 1")
            assert cursor.fetchall() == (("uno",),)
            moment = min(written.states)
            cursor.execute(f"SELECT name FROM things FOR SYSTEM_TIME AS OF '{moment}' WHERE id = 1")
            assert cursor.fetchall() == (("one",),)
            cursor.execute("SHOW COLUMNS FROM things FROM `shop.public`")
            assert {"id", "name", "_deleted"} <= {column for column, *_ in cursor.fetchall()}
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_sql_is_answered_over_the_tables_as_they_are_and_as_they_were(
    written: Written, lake: tributary.OpenLake
) -> None:
    question = "SELECT name FROM things WHERE id = 1"
    assert lake.sql(question).to_pylist() == [{"name": "uno"}]
    assert lake.sql(question, as_of=min(written.states)).to_pylist() == [{"name": "one"}]
    with pytest.raises(tributary.UnknownTable, match=r"Did you mean shop\.public\.things"):
        lake.sql("SELECT * FROM thinks")


def test_each_state_is_read_back_by_its_instant_and_by_a_time(
    written: Written, lake: tributary.OpenLake
) -> None:
    things = lake.table("things")
    for instant, state in written.states.items():
        assert _kept(things.as_of(instant)) == _names(state)
        assert things.as_of(instant).count() == len(state)
        moment = datetime.strptime(f"{instant}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
        assert things.as_of(moment) == things.as_of(moment.isoformat(" ")) == things.as_of(instant)
    with pytest.raises(tributary.OutOfHistory, match="no commit yet"):
        things.as_of("2001-01-01").arrow()
    with pytest.raises(tributary.NotAMoment):
        things.as_of("noon")


def test_the_changes_between_two_commits_are_the_rows_that_differ(
    written: Written, lake: tributary.OpenLake
) -> None:
    things, (first, changed, last) = lake.table("things"), sorted(written.states)
    found = things.changes(since=first)
    assert (found.since, found.until) == (first, last)
    assert [found.inserted["name"].to_pylist(), found.updated["name"].to_pylist()] == [["three"], ["uno"]]
    assert found.deleted["name"].to_pylist() == ["two"]
    assert things.changes(first, changed).deleted["name"].to_pylist() == ["two"]
    nothing = things.changes(found.until)
    assert [rows.num_rows for rows in (nothing.inserted, nothing.updated, nothing.deleted)] == [0, 0, 0]
    with pytest.raises(tributary.NotAMoment, match="end before they begin"):
        things.changes(last, first)


def test_history_and_quarantine_show_every_event_s_result(written: Written, lake: tributary.OpenLake) -> None:
    things = lake.table("things")
    latest, changes, _ = things.history()
    assert [commit.instant for commit in things.history()] == sorted(written.states, reverse=True)
    assert things.history(limit=1) == (latest,)
    assert (changes.events, changes.quarantined, latest.quarantined) == (3, 0, 1)
    assert latest.positions == {0: 7}
    assert latest.topic == TOPIC
    (event,) = things.quarantine()
    assert (event.value, event.position) == (b"\xff", "0:6")


def test_the_command_shows_the_same_as_the_api(
    written: Written, lake: tributary.OpenLake, capsys: pytest.CaptureFixture[str]
) -> None:
    of_lake = ["--lake", str(written.lake_file), "--state", str(written.state), "--json"]
    question, told = "SELECT id FROM things ORDER BY id", {}
    for command in (["query", question], ["tables"], ["history", "things"]):
        assert main.run([*command, *of_lake]) == 0
        told[command[0]] = json.loads(capsys.readouterr().out)
    (table,), things = told["tables"], lake.table("things")
    assert told["query"] == lake.sql(question).to_pylist()
    assert (table["table"], table["rows"], table["quarantined"]) == (
        str(things.name),
        things.count(),
        len(things.quarantine()),
    )
    assert [commit["instant"] for commit in told["history"]] == [one.instant for one in things.history()]


@pytest.mark.usefixtures("on_aws")
def test_a_deployed_lake_is_read_with_the_user_s_credentials(written: Written) -> None:
    _deploy()
    lake = tributary.open_lake(written.lake_file, aws=True)
    (summary,) = lake.tables()
    assert summary.uri == f"s3://shop-silver-{ACCOUNT}-{REGION}/shop/public/things"
    assert _kept(summary.table) == _names(written.rows)
    assert lake.sql("SELECT count(*) AS n FROM things").to_pylist() == [{"n": 3}]
    assert len(summary.table.quarantine()) == 1
    assert written.server.secret_key not in repr(lake)


@pytest.mark.usefixtures("on_aws")
def test_an_s3_refusal_names_the_bucket(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    _deploy()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another one")
    with pytest.raises(tributary.LakeUnreadable, match=f"s3://shop-silver-{ACCOUNT}"):
        tributary.open_lake(written.lake_file, aws=True).tables()


@pytest.mark.usefixtures("on_aws")
def test_a_lake_that_is_not_deployed_is_reported(written: Written) -> None:
    with pytest.raises(NotDeployed, match="tributary-shop-lake"):
        tributary.open_lake(written.lake_file, aws=True)


def test_the_credentials_of_a_role_are_read_for_each_use() -> None:
    credentials = [Credentials("a", "b", "first"), Credentials("a", "b", "second")]
    files = AwsFiles(REGION, lambda: credentials.pop(0))
    assert [files.hudi_options["aws_session_token"] for _ in range(2)] == ["first", "second"]


def test_a_lake_that_was_never_started_is_reported(written: Written, tmp_path: Path) -> None:
    with pytest.raises(PipelineDown, match=r"never started here.*Start the pipeline"):
        tributary.open_lake(written.lake_file, state=tmp_path)


def test_without_pandas_the_error_says_how_to_install_it(
    lake: tributary.OpenLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(tributary.PandasMissing, match=r"pip install 'tributary\[pandas\]'"):
        lake.table("things").pandas()


def test_the_console_shows_a_deployed_lake_and_has_no_button_that_changes_it(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lake reads items, because moto has no MSK Connect."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with running_moto() as url:
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", written.server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", written.server.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", written.server.secret_key)
        _deploy()
        cluster = boto3.client("emr", REGION).run_job_flow(
            Name="shop",
            Instances={"MasterInstanceType": "m7g.xlarge", "KeepJobFlowAliveWhenNoSteps": True},
        )
        make_stack(
            "processing",
            {Output.EMR_CLUSTER: cluster["JobFlowId"], Output.RUNTIME_ROLE: f"arn:aws:iam::{ACCOUNT}:role/r"},
        )
        boto3.client("logs", REGION).create_log_group(logGroupName=NAMES.log_group("restart"))
        lake_file = tmp_path / "lake.toml"
        lake_file.write_text(ITEMS)
        table = "shop.public.things"
        with served(lake_file, tmp_path / "state", "--aws") as address, chromium() as browser:
            walk = Walk(address, browser)
            with walk.page("/") as page:
                page.get_by_text("All is well").wait_for()
                page.get_by_text("Jobs, the latest first").wait_for()
                page.get_by_text("1 table", exact=True).wait_for()
            with walk.page(f"/table/{table}") as page:
                page.get_by_text("Commits, newest first").wait_for()
                page.get_by_text("_log_position").wait_for()
                assert page.get_by_role("button", name="Pause").count() == 0
            with walk.page("/quarantine") as page:
                page.get_by_text("0:6").first.wait_for()
                assert page.get_by_role("button", name="Replay").count() == 0
            with walk.page("/logs") as page:
                page.get_by_text("No such entry.").wait_for()
            ask(walk, "SELECT name FROM things WHERE id = 1", "uno")
        assert walk.problems == []
