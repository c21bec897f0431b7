"""A link to a deployed source does what the source's connector on MSK Connect does."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.stub import Stubber
from confluent_kafka import Consumer, KafkaError, KafkaException
from pydantic import SecretStr

from connectors.certificates import RDS_ROOTS
from connectors.engines.postgres.connector import encrypted_on_aws
from connectors.engines.registry import engine_of
from tests.cli.deployed import ACCOUNT, ITEMS, LAKE, NAMES, REGION, deploy, moto_aws
from tests.connectors.deployments import aws_deployment
from tributary.api.open_lake import open_deployed
from tributary.aws.session import AwsSession
from tributary.cli import main
from tributary.contract.aws import Aws
from tributary.contract.aws_names import METRICS_NAMESPACE
from tributary.contract.lake import parse_lake
from tributary.contract.table_name import TableName
from tributary.local.state import StateFolder
from tributary.operations import stored_offsets
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.linked_lake import SecretUnfit, kafka_of, linked_lake, login_of, msk
from tributary.operations.aws.linked_lake import _read_secret as read_secret
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_topics import KafkaUnreachable, partitions_of
from tributary.operations.snapshots.keeper import SnapshotKeeper
from tributary.operations.verify.record import CheckedPart, Verification
from tributary.operations.verify.rounds import VerifyKeeper, Wanted

CONNECTOR = f"{NAMES.resource}-shop-debezium"
ENGINES = """
[lake]
name = "shop"

[source.web]
engine = "postgres"
database = "shop"
tables = ["public.*"]

[source.stock]
engine = "mysql"
tables = ["stock.*"]

[source.erp]
engine = "sqlserver"
database = "ERP"
tables = ["dbo.*"]
"""


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsSession]:
    with moto_aws(monkeypatch):
        yield AwsSession(boto3.Session(region_name=REGION), Aws(region=REGION), ACCOUNT)


@pytest.mark.parametrize("name", ["web", "stock", "erp"])
def test_the_login_is_the_connectors_for_every_engine(name: str) -> None:
    lake = parse_lake(ENGINES)
    source = lake.source(name)
    deployment = aws_deployment(lake)
    config = engine_of(source).render(lake, source, deployment).config
    access = deployment.databases[name]
    asked: list[tuple[str, str]] = []

    def secret(of: str, key: str) -> SecretStr:
        asked.append((of, key))
        return SecretStr("password")

    login = login_of(config, secret)
    assert (login.host, login.port, login.user) == (access.host, access.port, access.user)
    assert f"${{secretsmanager:{asked[0][0]}:{asked[0][1]}}}" == config["database.password"]
    assert login.password.get_secret_value() == "password"


@pytest.mark.parametrize(("sslmode", "ca_file"), [("verify-full", str(RDS_ROOTS)), ("require", None)])
def test_a_session_is_always_encrypted_and_verified_if_the_connector_verifies(
    sslmode: str, ca_file: str | None
) -> None:
    config = {
        "database.hostname": "db",
        "database.port": "5432",
        "database.user": "debezium",
        "database.password": "${secretsmanager:a/b:password}",
        **encrypted_on_aws(sslmode),  # type: ignore[arg-type]
    }
    login = login_of(config, lambda *_: SecretStr("p"))
    assert login.encryption is not None
    assert login.encryption.ca_file == ca_file


def test_a_password_in_the_config_is_not_repeated_in_the_message() -> None:
    config = {"name": "c", "database.password": "hunter2"}
    with pytest.raises(SecretUnfit) as error:
        login_of(config, lambda *_: SecretStr(""))
    assert "hunter2" not in str(error.value)
    assert "option database.password" in str(error.value)


@pytest.mark.parametrize("text", ["hunter2", '["hunter2"]', '{"other": "hunter2"}'])
def test_a_secret_of_another_form_is_named_and_not_shown(session: AwsSession, text: str) -> None:
    boto3.client("secretsmanager", REGION).create_secret(Name="a/b", SecretString=text)
    with pytest.raises(SecretUnfit) as error:
        read_secret(session, "a/b", "password")
    assert "secret a/b" in str(error.value)
    assert "hunter2" not in f"{error.value!r} {error.value} {error.value.__context__!r}"


def test_the_key_of_a_secret_is_read(session: AwsSession) -> None:
    boto3.client("secretsmanager", REGION).create_secret(Name="a/b", SecretString='{"password": "p"}')
    assert read_secret(session, "a/b", "password").get_secret_value() == "p"


def test_kafka_gets_a_token_that_the_callers_credentials_signed(session: AwsSession) -> None:
    config = msk(session, "b-1:9098").client_config
    assert (config["security.protocol"], config["sasl.mechanisms"]) == ("SASL_SSL", "OAUTHBEARER")
    token, expires = config["oauth_cb"]("")
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    query = parse_qs(urlsplit(url).query)
    assert urlsplit(url).hostname == f"kafka.{REGION}.amazonaws.com"
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"][0].startswith(f"{session.read_credentials().access_key}/")
    assert expires > 1_700_000_000
    assert "oauth_cb" not in repr(msk(session, "b-1:9098"))


@pytest.fixture
def connectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    """MSK Connect as in botocore's model, because moto lacks it, beside a deployed lake in this folder."""
    (tmp_path / "lake.toml").write_text(LAKE)
    monkeypatch.chdir(tmp_path)
    client = boto3.client("kafkaconnect", REGION)
    with moto_aws(monkeypatch), Stubber(client) as stub:
        deploy()
        monkeypatch.setattr(AwsSession, "kafkaconnect", client)
        yield stub


@pytest.mark.parametrize("command", ["reconcile", "verify", "snapshot"])
def test_a_lake_whose_connector_was_never_deployed_is_told_how_to_deploy_it(
    connectors: Stubber, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    connectors.add_response("list_connectors", {"connectors": []})
    assert main.run([command, "--aws"]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert f"connector {CONNECTOR}" in told
    assert "cdk deploy" in told


def test_a_machine_outside_of_the_network_is_told_where_to_run_the_command(
    connectors: Stubber, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arn = f"arn:aws:kafkaconnect:{REGION}:{ACCOUNT}:connector/{CONNECTOR}/1"
    found = {"connectorName": CONNECTOR, "connectorArn": arn, "connectorState": "RUNNING"}
    connectors.add_response("list_connectors", {"connectors": [found]})
    connectors.add_response("describe_connector", {"connectorConfiguration": {}}, {"connectorArn": arn})
    monkeypatch.setattr(stored_offsets, "TIMEOUT_SECONDS", 1.0)
    assert main.run(["verify", "--aws"]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "Kafka does not answer" in told
    assert "run the command where the lake's private network can be reached" in told


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Verification]]:
    """What rounds of `verify --aws` know, which the test fills. No database and no Kafka is there."""
    known: list[Verification] = []

    def step(_: VerifyKeeper, wanted: Wanted) -> Mapping[TableName, Verification]:
        if not known:
            raise KafkaUnreachable("Kafka does not answer", where="b:9098")
        return {one.table: one for one in known if wanted.tables is None or one.table in wanted.tables}

    @contextmanager
    def deployed(*_: object) -> Iterator[Any]:
        lake = parse_lake(LAKE)
        assert lake.aws is not None
        session = AwsSession(boto3.Session(region_name=REGION), lake.aws, ACCOUNT)
        yield SimpleNamespace(lake=lake, deployed=SimpleNamespace(session=session))

    monkeypatch.setattr("tributary.cli.aws.linked_lake.deployed_lake_with_sources", deployed)
    monkeypatch.setattr(VerifyKeeper, "step", step)
    monkeypatch.setattr(VerifyKeeper, "known", lambda _: {one.table: one for one in known})
    monkeypatch.setattr(SnapshotKeeper, "step", lambda _: {})
    with moto_aws(monkeypatch):
        yield known


def _differing_rows() -> float | None:
    """Return the lake's metric, if there is one."""
    points = boto3.client("cloudwatch", REGION).get_metric_statistics(
        Namespace=METRICS_NAMESPACE,
        MetricName="DifferingRows",
        Dimensions=[{"Name": "Lake", "Value": "shop"}],
        StartTime=datetime.now(UTC) - timedelta(minutes=5),
        EndTime=datetime.now(UTC) + timedelta(minutes=5),
        Period=3600,
        Statistics=["Maximum"],
    )["Datapoints"]
    return points[0]["Maximum"] if points else None


def test_with_publish_metrics_tell_of_rows_that_differ_and_the_exit_status_does_not(
    compared: list[Verification], capsys: pytest.CaptureFixture[str]
) -> None:
    orders, lines = TableName("shop", "public", "orders"), TableName("shop", "public", "lines")
    compared += [
        Verification(orders, parts=(CheckedPart(rows=9, differences=2),)),
        Verification(lines, parts=(CheckedPart(rows=9, equal_us=1),)),
    ]
    assert main.run(["verify", "--aws"]) == 1
    assert "tributary snapshot --aws 'shop.public.orders'" in " ".join(capsys.readouterr().out.split())
    assert _differing_rows() is None
    assert main.run(["verify", "--aws", "--publish"]) == 0
    assert _differing_rows() == 2


def test_a_round_that_fails_still_tells_what_is_known(compared: list[Verification]) -> None:
    assert compared == []
    assert main.run(["verify", "--aws", "--publish"]) == 1
    assert _differing_rows() == 0


def test_a_lake_of_this_machine_has_no_metrics_in_cloudwatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.run(["verify", "--publish"]) == 2
    assert "CloudWatch" in capsys.readouterr().err


def test_a_broker_that_restarts_is_told_as_unreachable_so_that_a_command_that_follows_goes_on() -> None:
    class Restarting:
        def list_topics(self, topic: str, **_: Any) -> Any:
            return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

        def assign(self, _: Any) -> None: ...

        def get_watermark_offsets(self, *_: Any, **__: Any) -> Any:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    offsets = stored_offsets.StoredOffsets(KafkaCluster("b:9098"), "offsets", cast(Consumer, Restarting()))
    with pytest.raises(KafkaUnreachable):
        offsets.of("shop")


def test_a_topic_that_may_not_be_described_is_not_taken_for_a_missing_one() -> None:
    refused = SimpleNamespace(error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), partitions={})
    listed = SimpleNamespace(list_topics=lambda topic, **_: SimpleNamespace(topics={topic: refused}))
    with pytest.raises(KafkaException):
        partitions_of(cast(Consumer, listed), "offsets")


def test_items_are_compared_in_the_streams_region_and_repeatedly_only_while_a_job_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = parse_lake(ITEMS)
    assert lake.aws is not None
    with moto_aws(monkeypatch):
        deploy(has_kafka=False)
        session = AwsSession(boto3.Session(region_name=REGION), lake.aws, ACCOUNT)
        deployed, opened = DeployedLake(lake, session), open_deployed(lake, session)
        with linked_lake(deployed, opened, kafka_of(deployed), StateFolder(tmp_path / "state")) as linked:
            (link,) = linked.item_links()
            assert linked.links() == ()
    assert link.dynamodb.meta.region_name == REGION
    assert link.silver == NAMES.bucket("silver", ACCOUNT, REGION)
    assert link.is_ingesting is False
