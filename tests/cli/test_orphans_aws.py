"""A person decides about the orphans of a deployed lake, and a removed table is in Glue no more."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto.emr.models import emr_backends

from tests.aws_double import running_moto
from tests.cli.deployed import ACCOUNT, LAKE, NAMES, REGION, Deployed, deploy
from tributary.api.open_lake import open_deployed
from tributary.aws.session import AwsSession
from tributary.cli import main
from tributary.cli.aws import job_run
from tributary.cli.aws import linked_lake as opening
from tributary.cli.aws.remedy_words import worded_for_aws
from tributary.contract.lake import read_lake
from tributary.local.state import StateFolder
from tributary.operations import known_tables, orphans
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.linked_lake import LinkedLake
from tributary.operations.kafka_cluster import KafkaCluster

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

OLD = "sold.public.old"
"""A table of a source that the lake file no longer has."""
DATABASE = "shop_silver"
SILVER = NAMES.bucket("silver", ACCOUNT, REGION)
QUARANTINE = NAMES.bucket("quarantine", ACCOUNT, REGION)


@pytest.fixture(autouse=True)
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """A lake with an orphan, on a server in place of AWS, because PyArrow writes to the buckets, too."""
    (tmp_path / "lake.toml").write_text(LAKE)
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setattr(opening, "deployed_lake_with_sources", _linked)
    monkeypatch.setattr(orphans, "read_table_topics", lambda *_: {})
    monkeypatch.setattr(known_tables, "read_table_names", lambda *_: ())
    with running_moto() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()
        found = deploy()
        found.put_silver_table("orders")
        found.put("silver", "sold/public/old/.hoodie/20260101000000000.deltacommit", "{}")
        found.put("silver", "sold/public/old/rows.parquet", "rows")
        found.put("quarantine", "sold/public/old/bad.parquet", "events")
        yield found


@contextmanager
def _linked(lake_file: Path, environment: str | None, state: Path) -> Iterator[LinkedLake]:
    lake = read_lake(lake_file, environment)
    assert lake.aws is not None
    deployed = DeployedLake(lake, AwsSession(boto3.Session(region_name=REGION), lake.aws, ACCOUNT))
    opened = open_deployed(lake, deployed.session)
    with worded_for_aws():
        yield LinkedLake(deployed, opened, StateFolder(state), KafkaCluster("nowhere:9098"), ())


@pytest.fixture
def glue(request: pytest.FixtureRequest) -> GlueClient:
    request.getfixturevalue("deployed")
    client = boto3.client("glue", REGION)
    client.create_database(DatabaseInput={"Name": DATABASE})
    for name, path in {
        "sold__public__old": "sold/public/old",
        "sold__public__old_ro": "sold/public/old",
        "sold__public__old_rt": "sold/public/another",
        "shop__public__orders": "shop/public/orders",
    }.items():
        location = f"s3://{SILVER}/{path}"
        client.create_table(
            DatabaseName=DATABASE, TableInput={"Name": name, "StorageDescriptor": {"Location": location}}
        )
    return client


def _in_glue(glue: GlueClient) -> set[str]:
    return {table["Name"] for table in glue.get_tables(DatabaseName=DATABASE)["TableList"]}


def _objects(deployed: Deployed, bucket: str, prefix: str) -> list[str]:
    found = deployed.s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    return [one["Key"] for one in found if not one["Key"].endswith("/")]


def _steps(deployed: Deployed) -> list[Any]:
    # Moto's server takes some services for those of another region.
    backends = emr_backends[ACCOUNT].values()
    (cluster,) = (one.clusters[deployed.place_id] for one in backends if deployed.place_id in one.clusters)
    return list(cluster.steps)


def test_orphans_are_listed_and_kept(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["orphans", "list", "--aws", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["table"], found["state"]) == (OLD, "orphan")
    assert found["reason"] == "the lake file has no [source.sold]"

    assert main.run(["orphans", "keep", "old", "--aws"]) == 0
    assert _objects(deployed, QUARANTINE, "_orphans/") == ["_orphans/sold/public/old.json"]
    assert main.run(["orphans", "list", "--aws"]) == 0
    assert "kept" in capsys.readouterr().out
    assert main.run(["orphans", "keep", "orders", "--aws"]) == 1
    assert "cdk deploy --all" in capsys.readouterr().err


def test_a_removed_orphan_is_in_no_bucket_and_not_in_glue(
    deployed: Deployed, glue: GlueClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["orphans", "remove", "old", "--aws", "--yes", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["table"], found["files"], found["events_in_bronze"]) == (OLD, 3, None)
    assert not _objects(deployed, SILVER, "sold/")
    assert not _objects(deployed, QUARANTINE, "sold/")
    assert _objects(deployed, SILVER, "shop/")
    # A name that shows other files is not the table's.
    assert _in_glue(glue) == {"sold__public__old_rt", "shop__public__orders"}
    assert main.run(["orphans", "list", "--aws", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_nothing_is_removed_without_confirmation_or_beside_a_job(
    deployed: Deployed, glue: GlueClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["orphans", "remove", "old", "--aws"]) == 1  # Nobody answers the question.
    assert "Delete this table?" in capsys.readouterr().err
    assert main.run(["submit", "ingest"]) == 0
    assert main.run(["orphans", "remove", "old", "--aws", "--yes"]) == 1
    told = capsys.readouterr().err
    assert "tributary-shop-ingest" in told
    assert "tributary submit stop" in told
    assert len(_objects(deployed, SILVER, "sold/")) == 2
    assert "sold__public__old" in _in_glue(glue)


@pytest.mark.usefixtures("glue")
def test_events_are_deleted_by_a_job_if_the_lake_file_allows_it(
    deployed: Deployed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["orphans", "remove", "old", "--aws", "--yes", "--events"]
    assert main.run(command) == 1
    assert "[bronze].erase" in capsys.readouterr().err
    assert len(_objects(deployed, SILVER, "sold/")) == 2

    (tmp_path / "lake.toml").write_text(LAKE + "[bronze]\nerase = true\n")
    topic, gone = "shop.sold.public.old", []
    monkeypatch.setattr(orphans, "read_last_commit", lambda *_: type("Commit", (), {"topic": topic}))
    monkeypatch.setattr(orphans, "delete_topic", lambda kafka, topic: gone.append((kafka.bootstrap, topic)))
    states = ["FAILED", "COMPLETED"]

    def end() -> None:
        _steps(deployed)[-1].state = states.pop(0)

    monkeypatch.setattr(job_run, "_pause", end)
    assert main.run(command) == 1
    assert "tributary-shop-delete-events is FAILED" in capsys.readouterr().err
    # The removal can be repeated, although the rows are gone.
    assert main.run(command) == 0
    assert "Bronze lost its events." in capsys.readouterr().out
    assert gone == [("nowhere:9098", topic)] * 2
    arguments = _steps(deployed)[-1].args
    assert arguments[arguments.index("--topic") + 1] == topic
    assert arguments[arguments.index("s3://assets/main.py") + 1] == "delete-events"
