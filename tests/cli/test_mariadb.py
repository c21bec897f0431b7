"""A real MariaDB passes through the whole pipeline: every type, random transactions, and DDL in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import boto3
import psutil
import pytest

from connectors.connect_rest import ConnectRest
from connectors.engines.binlog.session import Session, execute
from tests.aws_double import running_moto
from tests.cli.binlog_lakes import (
    LAKE_TABLES,
    ROWS,
    VALUES,
    BinlogLake,
    check_same_values_from_snapshot_and_log,
    check_types_and_transactions,
    set_up,
)
from tests.local.landed import wait_until
from tributary.contract.lake import read_lake
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.local import mariadb
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import down, up
from tributary.local.process import read_process
from tributary.local.state import StateFolder
from tributary.operations.aws import linked_lake
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.linked_lake import login_of
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.snapshots.asking import read_again
from tributary.operations.stored_offsets import stored_offsets
from tributary.operations.verify.rounds import VerifyKeeper, Wanted
from tributary.operations.whole_lake import reconcile_links
from tributary.operations.workspace import Workspace

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LAKE = (
    """
[lake]
name = "maria"

[source.shop]
engine = "mariadb"
tables = ["shop.*"]
partitions = 2
"""
    + LAKE_TABLES
)
MARIADB_VALUES = {**VALUES, "token": ("uuid", ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",))}


def set_up_mariadb(_: Source, session: Session) -> None:
    set_up(session, MARIADB_VALUES)
    execute(session, "CREATE SEQUENCE numbers")
    execute(session, "CREATE TABLE versions (id int PRIMARY KEY, a int) WITH SYSTEM VERSIONING")


def open_session(state: StateFolder, lake_file: Path) -> Session:
    workspace = Workspace.open(lake_file, state.path)
    (source,) = workspace.lake.sources
    session: Session = SourceDatabase(workspace.lake, source, workspace.state, workspace.settings).connect()
    session.select_db("shop")
    return session


@pytest.fixture(scope="module")
def maria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BinlogLake]:
    """A pipeline whose database already had rows when it was first read."""
    folder = tmp_path_factory.mktemp("maria")
    lake_file, state = folder / "lake.toml", StateFolder(folder / "state")
    lake_file.write_text(LAKE)
    try:
        up(read_lake(lake_file), state, seed=set_up_mariadb)
        yield BinlogLake(
            lake_file,
            state.path,
            session=lambda: open_session(state, lake_file),
            values=MARIADB_VALUES,
            not_compared={"spot"},
            left_out={"in_memory", "child", "numbers", "versions", "later_numbers"},
        )
    finally:
        down(state)
        shutil.rmtree(state.path, ignore_errors=True)


def test_the_lake_equals_mariadb_after_every_type_and_random_transactions_with_ddl(maria: BinlogLake) -> None:
    with maria.session() as session:
        # Changes of these would stop a connector that took them.
        execute(session, "INSERT INTO versions VALUES (NEXTVAL(numbers), 1)")
        # Changes of these stop the connector until it skips them, although the last one is gone by then.
        execute(session, "CREATE SEQUENCE later_numbers")
        execute(session, "SELECT NEXTVAL(later_numbers)")
        execute(session, "CREATE SEQUENCE gone_numbers")
        execute(session, "SELECT NEXTVAL(gone_numbers)")
        execute(session, "DROP SEQUENCE gone_numbers")
    check_types_and_transactions(maria)


def test_a_snapshot_and_the_log_give_the_same_values(maria: BinlogLake) -> None:
    check_same_values_from_snapshot_and_log(maria)


def test_soft_deleted_rows_stay_in_the_lake_and_are_marked(maria: BinlogLake) -> None:
    found = maria.json("query", "SELECT id, _deleted FROM soft WHERE id IN (500, 501) ORDER BY id")

    assert found == [{"id": 500, "_deleted": True}, {"id": 501, "_deleted": False}]


@pytest.fixture
def s3_with_locks(maria: BinlogLake) -> Iterator[S3Client]:
    """S3 with conditional writes, which the local one has not, for the locks in the lake's quarantine."""
    bucket = maria.workspace.open_lake.quarantine.split("/")[0]
    with running_moto() as url:
        client = boto3.client(
            "s3", "us-east-1", endpoint_url=url, aws_access_key_id="x", aws_secret_access_key="x"
        )
        client.create_bucket(Bucket=bucket)
        yield client


def test_a_deployed_lake_is_compared_by_its_connectors_config_and_the_offsets_in_kafka(
    maria: BinlogLake, s3_with_locks: S3Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parts are those of this machine, but what is asked of AWS. The database here has no encryption."""
    workspace = maria.workspace
    (source,) = workspace.lake.sources
    connect = ConnectRest(workspace.settings.connect_url)
    connector = workspace.lake.source_names(source).connector
    config = connect.config(connector)
    assert config is not None
    password = workspace.settings.secrets.replication_password("shop").get_secret_value()
    secrets = {"tributary/maria/shop": json.dumps({"password": password})}
    session = SimpleNamespace(
        region="eu-west-1",
        s3=s3_with_locks,
        secretsmanager=SimpleNamespace(
            get_secret_value=lambda **asked: {"SecretString": secrets[asked["SecretId"]]}
        ),
    )
    deployed = cast(DeployedLake, SimpleNamespace(lake=workspace.lake, session=session))
    on_aws = {**config, "database.password": "${secretsmanager:tributary/maria/shop:password}"}
    monkeypatch.setattr(linked_lake, "read_config", lambda *_: on_aws)
    monkeypatch.setattr(linked_lake, "login_of", lambda *found: replace(login_of(*found), encryption=None))

    # On AWS, each source has workers of its own.
    topic = workspace.lake.names.connect_offsets_topic
    monkeypatch.setattr(linked_lake, "stored_offsets", lambda kafka, _: stored_offsets(kafka, topic))

    with linked_lake.linked_lake(deployed, workspace.open_lake, workspace.kafka, workspace.state) as lake:
        (link,) = lake.links()
        assert link.read_offset() == connect.offset(connector)
        found = reconcile_links(lake.links(), (), lambda: Patience.of(120))
        later = connect.offset(connector)
        wait_until(lambda: link.read_offset() == later, "what Connect has stored since")
        followed = maria.followed
        names = {TableName("shop", "shop", table) for table in followed}
        verified = VerifyKeeper(lake, print).step(Wanted(names, None))
        again = read_again(lake, ["shop.shop.later"], print, print)

    assert {table.name.table for table in found.tables if table.identical} >= followed
    assert found.rows > ROWS
    assert (again.tables, again.failed) == ((TableName("shop", "shop", "later"),), {})
    assert {name: (one.problem, one.differences) for name, one in verified.items()} == dict.fromkeys(
        names, (None, 0)
    )


def test_no_password_is_in_an_argument_or_a_log(maria: BinlogLake) -> None:
    secrets = maria.workspace.settings.secrets
    passwords = [
        password.get_secret_value()
        for password in (secrets.mariadb_admin, secrets.replication_password("shop"))
    ]
    record = read_process(mariadb.SERVICE, maria.workspace.state.run)
    assert record is not None
    shown = [" ".join(psutil.Process(record.pid).cmdline())]
    shown += [log.read_text(errors="replace") for log in maria.workspace.state.logs.glob("*.log")]
    assert len(shown) > 5
    assert not [password for password in passwords if any(password in text for text in shown)]
