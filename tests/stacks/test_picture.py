"""The picture of a template."""

from __future__ import annotations

from typing import Any

from stacks.picture import as_mermaid

CONNECTOR = {
    "Type": "AWS::KafkaConnect::Connector",
    "Properties": {
        "ConnectorName": "sink",
        "ConnectorConfiguration": {},
        "ServiceExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
    },
}
BUCKET = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "shop-bronze"}}


def _lake(action: str, role: str = "Role", on: str = "arn:aws:s3:::shop-bronze/*") -> dict[str, Any]:
    policy = {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {
            "Roles": [{"Ref": role}],
            "PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": action, "Resource": on}]},
        },
    }
    return {
        "Lake": {"Resources": {"Bronze": BUCKET}},
        "Connect": {"Resources": {"Sink": CONNECTOR, "Policy": policy}},
    }


def test_an_arrow_leads_to_what_may_be_written() -> None:
    assert "ConnectSink --> LakeBronze" in as_mermaid(_lake("s3:PutObject"))


def test_an_arrow_leads_away_from_what_may_only_be_read() -> None:
    assert "LakeBronze --> ConnectSink" in as_mermaid(_lake("s3:GetObject"))


def test_what_another_role_may_do_is_no_arrow_of_a_connector() -> None:
    assert "-->" not in as_mermaid(_lake("s3:PutObject", role="Other"))


def test_a_bucket_whose_name_begins_alike_is_another_one() -> None:
    assert "-->" not in as_mermaid(_lake("s3:PutObject", on="arn:aws:s3:::shop-bronze-of-others/*"))
