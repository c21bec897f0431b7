"""The services that Aurora's bootstrap functions use."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import boto3

from stacks.functions.bootstrap.answers import Put, put
from stacks.functions.bootstrap.data_api import DataApi, RdsData
from stacks.functions.bootstrap.slot_limit import Rds


@dataclass(frozen=True)
class Services:
    """The services outside of the function.

    read_password  returns the password in the secret with this ARN
    """

    rds_data: RdsData
    rds: Rds
    read_password: Callable[[str], str]
    answer: Put
    sleep: Callable[[float], None] = time.sleep


def database_of(properties: Mapping[str, str], services: Services) -> DataApi:
    return DataApi(
        services.rds_data, properties["Cluster"], properties["AdminSecret"], properties["Database"]
    )


def aws_services() -> Services:
    secrets_manager = boto3.client("secretsmanager")

    def read_password(secret: str) -> str:
        content = secrets_manager.get_secret_value(SecretId=secret)["SecretString"]
        return str(json.loads(content)["password"])

    return Services(boto3.client("rds-data"), boto3.client("rds"), read_password, put)
