"""Each way in which AWS is unreachable or refuses a request has a clear message."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.cli.deployed import LAKE, REGION, moto_aws
from tributary.aws import session
from tributary.aws.session import AwsError, NoCredentials, NotAllowed, Unreachable, aws_session
from tributary.cli import main
from tributary.contract.lake import parse_lake


@pytest.fixture
def in_folder_with_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake.toml").write_text(LAKE)
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(session, "_PATIENT", session._ONCE)


@pytest.mark.usefixtures("in_folder_with_lake")
def test_without_credentials_the_error_says_how_to_get_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["submit", "follow"]) == 1
    told = capsys.readouterr().err
    assert "nobody is logged in to AWS" in told
    assert "AWS_PROFILE" in told


@pytest.mark.usefixtures("in_folder_with_lake")
def test_a_missing_profile_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nowhere")
    assert main.run(["status", "--aws"]) == 1
    assert "The config profile (nowhere) could not be found" in capsys.readouterr().err


@pytest.mark.usefixtures("in_folder_with_lake")
@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("not settings of AWS", "Unable to parse config file"),
        ("[default]\nrole_arn = arn:aws:iam::123456789012:role/a\nsource_profile = b\n", "source_profile"),
    ],
)
def test_settings_of_aws_that_cannot_be_used_are_told(
    settings: str,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "config").write_text(settings)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert main.run(["status", "--aws"]) == 1
    told = capsys.readouterr().err
    assert "nobody is logged in to AWS" in told
    assert found in told


@pytest.mark.usefixtures("in_folder_with_lake")
def test_an_endpoint_from_aws_s_own_settings_is_used_and_reported_if_it_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert main.run(["submit", "follow"]) == 1
    told = capsys.readouterr().err
    assert "AWS does not answer" in told
    assert "http://127.0.0.1:1" in told


@pytest.mark.parametrize(
    ("code", "message", "told", "words"),
    [
        ("ExpiredToken", "The security token is expired", NoCredentials, "The security token is expired"),
        ("ExpiredTokenException", "", NoCredentials, "ExpiredTokenException"),
        ("UnrecognizedClientException", "invalid", NoCredentials, "aws sso login"),
        (
            "AccessDeniedException",
            "User: arn:aws:iam::1:user/x is not authorized to perform: elasticmapreduce:AddJobFlowSteps on …",
            NotAllowed,
            "the right to elasticmapreduce:AddJobFlowSteps",
        ),
        ("AccessDenied", "Access Denied", NotAllowed, "the right to AddJobFlowSteps"),
        ("ThrottlingException", "Rate exceeded", Unreachable, "AWS throttles AddJobFlowSteps"),
        ("ValidationException", "No such role", AwsError, "AWS refuses AddJobFlowSteps"),
    ],
)
def test_a_refusal_of_aws_says_what_a_person_can_do(
    code: str, message: str, told: type[AwsError], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = ClientError({"Error": {"Code": code, "Message": message}}, "AddJobFlowSteps")
    with (
        moto_aws(monkeypatch),
        pytest.raises(told) as raised,
        aws_session(parse_lake(LAKE), Path("lake.toml")),
    ):
        raise refusal
    assert raised.type is told
    assert words in str(raised.value)


def test_all_services_are_asked_in_the_lake_s_region(monkeypatch: pytest.MonkeyPatch) -> None:
    with moto_aws(monkeypatch):
        monkeypatch.setenv("AWS_REGION", "us-east-2")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-2")
        with aws_session(parse_lake(LAKE), Path("lake.toml")) as found:
            clients = (found.cloudformation, found.emr, found.emr_once, found.s3, found.kafkaconnect)
            assert {client.meta.region_name for client in clients} == {REGION}


def test_a_request_that_emr_could_take_twice_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with moto_aws(monkeypatch), aws_session(parse_lake(LAKE), Path("lake.toml")) as found:
        once, patient = (vars(client.meta.config)["retries"] for client in (found.emr_once, found.emr))
        assert once == {"mode": "standard", "total_max_attempts": 1}
        assert patient["total_max_attempts"] > 1
