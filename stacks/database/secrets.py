"""The secrets of databases: the administrator's, which rotates, Debezium's, and the salt of hashes."""

from __future__ import annotations

import json

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from connectors.engines.registry import engine_of
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from tributary.contract.aws_names import HASH_SALT_KEY
from tributary.contract.source import Source

ADMIN = "lakeadmin"
"""RDS accepts 16 letters and digits. No schema may have this name: PostgreSQL would search it first."""

UNSAFE_CHARACTERS = " %+~`#$&*()|[]{}:;<>?!'/@\"\\,=^"
"""Characters that need escapes in URLs, shells or TOML. No password contains them."""


class AdminSecret(rds.DatabaseSecret):
    """The administrator's secret. It is kept if the database is kept.

    key  None: Secrets Manager's own key
    """

    def __init__(self, scope: Construct, key: kms.IKey | None) -> None:
        super().__init__(
            scope,
            "AdminSecret",
            username=ADMIN,
            exclude_characters=UNSAFE_CHARACTERS,
            encryption_key=key,
        )
        self.apply_removal_policy(_stack_of(scope).of_data)
        if key is None:
            acknowledge(self, _WITHOUT_A_KEY)
            skip(self, {"CKV_AWS_149": _AWS_KEY})


class ReplicationSecret(secretsmanager.Secret):
    """Debezium's secret. Its password has only letters and digits.

    name  a literal, because a placeholder in a connector's config cannot contain the colons of an ARN
    key   None: Secrets Manager's own key
    """

    def __init__(self, scope: Construct, source: Source, key: kms.IKey | None) -> None:
        lake = _stack_of(scope).lake
        self.name = f"tributary/{lake.name}/{source.name}/replication"
        user = engine_of(source).user(lake, source)
        super().__init__(
            scope,
            "ReplicationSecret",
            secret_name=self.name,
            description=f"Debezium's login to the database of {source.name}",
            encryption_key=key,
            generate_secret_string=secretsmanager.SecretStringGenerator(
                secret_string_template=json.dumps({"username": user}),
                generate_string_key="password",
                password_length=40,
                exclude_punctuation=True,
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )
        if not _stack_of(scope).aws.connect.rotation_days:
            acknowledge(self, _NOT_ROTATED)
        if key is None:
            acknowledge(self, _WITHOUT_A_KEY)
            skip(self, {"CKV_AWS_149": _AWS_KEY})


class HashSalt(secretsmanager.Secret):
    """The salt of the lake's hashed columns. It is kept if the databases are: another one gives other hashes.

    name  a literal, as for `ReplicationSecret`
    key   None: Secrets Manager's own key
    """

    def __init__(self, scope: Construct, key: kms.IKey | None) -> None:
        stack = _stack_of(scope)
        self.name = stack.names.hash_salt
        super().__init__(
            scope,
            "HashSalt",
            secret_name=self.name,
            description="The salt of hashed columns",
            encryption_key=key,
            generate_secret_string=secretsmanager.SecretStringGenerator(
                secret_string_template="{}",
                generate_string_key=HASH_SALT_KEY,
                password_length=64,
                exclude_punctuation=True,
            ),
            removal_policy=stack.of_data,
        )
        acknowledge(self, _SALT_NOT_ROTATED)
        if key is None:
            acknowledge(self, _WITHOUT_A_KEY)
            skip(self, {"CKV_AWS_149": _AWS_KEY})


def read_access(secret: secretsmanager.ISecret, region: str) -> list[iam.PolicyStatement]:
    """Return the permissions to read a secret, and to decrypt it if it has a key of the account."""
    statements = [
        iam.PolicyStatement(actions=["secretsmanager:GetSecretValue"], resources=[secret.secret_arn])
    ]
    if secret.encryption_key is not None:
        statements.append(
            iam.PolicyStatement(
                actions=["kms:Decrypt"],
                resources=[secret.encryption_key.key_arn],
                conditions={"StringEquals": {"kms:ViaService": f"secretsmanager.{region}.amazonaws.com"}},
            )
        )
    return statements


def _stack_of(scope: Construct) -> TributaryStack:
    stack = TributaryStack.of(scope)
    assert isinstance(stack, TributaryStack)
    return stack


_NIST_AND_HIPAA = ("NIST.800.53.R5", "HIPAA.Security")

_NOT_ROTATED = dict.fromkeys(
    ("AwsSolutions-SMG4", *(f"{pack}-SecretsManagerRotationEnabled" for pack in _NIST_AND_HIPAA)),
    "[aws.connect].rotation_days is 0: a rotation restarts the connector. The role may only read the lake's "
    "tables, and write Tributary's own two.",
)
_SALT_NOT_ROTATED = dict.fromkeys(
    ("AwsSolutions-SMG4", *(f"{pack}-SecretsManagerRotationEnabled" for pack in _NIST_AND_HIPAA)),
    "Another salt would give the same value another hash. Then rows could not be joined or compared.",
)
_AWS_KEY = (
    "Secrets Manager encrypts it with its own key in the account, aws/secretsmanager, because "
    '[aws.storage].encryption is "s3". With "kms", a key of the lake encrypts it.'
)
_WITHOUT_A_KEY = dict.fromkeys(
    (f"{pack}-SecretsManagerUsingKMSKey" for pack in (*_NIST_AND_HIPAA, "PCI.DSS.321")), _AWS_KEY
)
