"""Log groups: named after the lake, kept as long as the lake file says, and gone with their stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from stacks.base import TributaryStack
from stacks.log_groups import LakeLogGroup, LogKey
from tests.stacks.one_stack import lake_with, template_of
from tributary.contract.aws import LOG_DAYS


def _log_group(folder: Path, aws: str) -> Template:
    def make(app: App) -> Stack:
        stack = TributaryStack(app, "network", lake_with(aws), "a log group")
        key = LogKey(stack, "LogKey") if stack.aws.storage.encryption == "kms" else None
        LakeLogGroup(stack, "Logs", "of-something", key)
        return stack

    return template_of(make, folder)


@pytest.mark.parametrize("days", LOG_DAYS)
def test_logs_are_kept_for_every_span_that_the_lake_file_may_say(days: int, tmp_path: Path) -> None:
    template = _log_group(tmp_path, f'[aws.storage]\nlogs_kept = "{days}d"')
    template.has_resource_properties(
        "AWS::Logs::LogGroup", {"LogGroupName": "/tributary/shop/of-something", "RetentionInDays": days}
    )


def test_a_log_group_goes_with_its_stack_even_where_data_stays(tmp_path: Path) -> None:
    _log_group(tmp_path, "").has_resource("AWS::Logs::LogGroup", {"DeletionPolicy": "Delete"})


def test_with_kms_a_key_of_the_account_encrypts_the_logs(tmp_path: Path) -> None:
    template = _log_group(tmp_path, '[aws.storage]\nencryption = "kms"')
    (key,) = template.find_resources("AWS::KMS::Key")
    template.has_resource_properties("AWS::Logs::LogGroup", {"KmsKeyId": {"Fn::GetAtt": [key, "Arn"]}})
