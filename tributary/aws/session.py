"""The only access to AWS: in the lake's region, with the caller's credentials, and with errors for a person.

Profile, credentials and endpoints are AWS's own settings (AWS_PROFILE, AWS_ENDPOINT_URL, …).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import boto3
from botocore import exceptions
from botocore.config import Config

from tributary.contract.aws import Aws
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_emr import EMRClient
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_kafkaconnect import KafkaConnectClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient

_ATTEMPTS = 5
_PATIENT = Config(
    connect_timeout=10, read_timeout=30, retries={"mode": "standard", "total_max_attempts": _ATTEMPTS}
)
_ONCE = _PATIENT.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))


class AwsError(TributaryError):
    """AWS is unreachable, or it refused or failed a request."""


class NoCredentials(AwsError):
    """No valid AWS credentials were found, or they have expired."""


class NotAllowed(AwsError):
    """The credentials lack a right."""


class OtherAccount(AwsError):
    """The credentials belong to another account than the lake's."""


class Unreachable(AwsError):
    """AWS does not answer, or it throttled the request on every retry."""


class Credentials(NamedTuple):
    """The credentials that sign requests. `token` is None for a user's credentials, which do not expire."""

    access_key: str
    secret_key: str
    token: str | None


@dataclass(frozen=True)
class AwsSession:
    """AWS's services in the region of the lake's `[aws]`, with credentials for `account`."""

    boto: boto3.Session
    aws: Aws
    account: str

    @property
    def region(self) -> str:
        return self.aws.region

    @cached_property
    def cloudformation(self) -> CloudFormationClient:
        return self.boto.client("cloudformation", config=_PATIENT)

    @cached_property
    def cloudwatch(self) -> CloudWatchClient:
        return self.boto.client("cloudwatch", config=_PATIENT)

    @cached_property
    def emr(self) -> EMRClient:
        return self.boto.client("emr", config=_PATIENT)

    @cached_property
    def emr_once(self) -> EMRClient:
        """An EMR client without retries, for requests that must not run twice. EMR detects no duplicates."""
        return self.boto.client("emr", config=_ONCE)

    @cached_property
    def emr_serverless(self) -> EMRServerlessClient:
        return self.boto.client("emr-serverless", config=_PATIENT)

    @cached_property
    def glue(self) -> GlueClient:
        return self.boto.client("glue", config=_PATIENT)

    @cached_property
    def kafkaconnect(self) -> KafkaConnectClient:
        return self.boto.client("kafkaconnect", config=_PATIENT)

    @cached_property
    def logs(self) -> CloudWatchLogsClient:
        return self.boto.client("logs", config=_PATIENT)

    @cached_property
    def s3(self) -> S3Client:
        return self.boto.client("s3", config=_PATIENT)

    @cached_property
    def secretsmanager(self) -> SecretsManagerClient:
        return self.boto.client("secretsmanager", config=_PATIENT)

    @property
    def s3_endpoint(self) -> str | None:
        """The S3 server that AWS's settings name, such as AWS_ENDPOINT_URL_S3. None for AWS's own."""
        # botocore's types do not know this setting yet.
        ignoring = _PATIENT.merge(Config(ignore_configured_endpoint_urls=True))  # type: ignore[call-arg]
        own = self.boto.client("s3", config=ignoring).meta.endpoint_url
        return None if self.s3.meta.endpoint_url == own else self.s3.meta.endpoint_url

    def read_credentials(self) -> Credentials:
        """Return the current credentials. A role's credentials are renewed. Raises AwsError."""
        with told_errors(self.region):
            found = self.boto.get_credentials()
            frozen = found and found.get_frozen_credentials()
            if not (frozen and frozen.access_key and frozen.secret_key):
                raise exceptions.NoCredentialsError
            return Credentials(frozen.access_key, frozen.secret_key, frozen.token)


@contextmanager
def aws_session(lake: Lake, lake_file: Path) -> Iterator[AwsSession]:
    """Open a session with the lake's account, and turn AWS's errors in the context into AwsErrors.

    Raises AwsError, also if the lake file has no `[aws]`.
    """
    aws = lake.aws
    if aws is None:
        raise AwsError(
            "the lake file does not say where on AWS the lake is",
            where=str(lake_file),
            expected='a section [aws], at least with region = "…"',
        )
    with told_errors(aws.region):
        boto = boto3.Session(region_name=aws.region)
        identity = boto.client("sts", config=_PATIENT).get_caller_identity()
        _check_account(aws, lake_file, identity["Account"], identity["Arn"])
        yield AwsSession(boto, aws, identity["Account"])


def _check_account(aws: Aws, lake_file: Path, account: str, who: str) -> None:
    if aws.account not in (None, account):
        raise OtherAccount(
            "the lake is in another account than the one you are logged in to",
            where=f"{lake_file}, entry [aws].account",
            found=f"{who}, of account {account}",
            expected=f"account {aws.account}",
            remedy="Choose the profile of that account with AWS_PROFILE.",
        )


@contextmanager
def told_errors(region: str) -> Iterator[None]:
    """Turn AWS's errors in the context into AwsErrors."""
    try:
        yield
    except exceptions.ClientError as error:
        raise _told_refusal(error, region) from error
    except _LOGIN_ERRORS as error:
        raise _no_credentials(str(error)) from error
    except (exceptions.HTTPClientError, exceptions.ConnectionError) as error:
        raise Unreachable(
            "AWS does not answer",
            where=f"region {region}",
            found=str(error),
            remedy="Check that this machine can reach it, and that the account has enabled the region in "
            "[aws].region.",
        ) from error


_LOGIN_ERRORS = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.ProfileNotFound,
    exceptions.ConfigParseError,
    exceptions.ConfigNotFound,
    exceptions.InvalidConfigError,
    exceptions.UnknownCredentialError,
    exceptions.RefreshWithMFAUnsupportedError,
    exceptions.TokenRetrievalError,
    exceptions.NoAuthTokenError,
    exceptions.SSOError,
    exceptions.LoginError,
)
_LOGIN_CODES = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
        "InvalidClientTokenId",
        "InvalidAccessKeyId",
        "UnrecognizedClientException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "AuthFailure",
    }
)
_REGION_CODES = frozenset({"InvalidClientTokenId", "UnrecognizedClientException"})
_REGION_REMARK = " AWS gives the same answer if the account has not enabled the region in [aws].region."
_RIGHTS_CODES = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "UnauthorizedException", "403"}
)
_THROTTLING_CODES = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
    }
)
_ACTION = re.compile(r"not authorized to perform:? ([a-z0-9-]+:[A-Za-z0-9*]+)")


def _told_refusal(error: exceptions.ClientError, region: str) -> AwsError:
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    if code in _LOGIN_CODES:
        return _no_credentials(message or code, _REGION_REMARK if code in _REGION_CODES else "")
    if code in _RIGHTS_CODES:
        named = _ACTION.search(message)
        return NotAllowed(
            f"you lack the right to {named[1] if named else error.operation_name}",
            where=f"region {region}",
            found=message or code,
            remedy="Ask for that right, or choose another profile with AWS_PROFILE.",
        )
    if code in _THROTTLING_CODES:
        return Unreachable(
            f"AWS throttles {error.operation_name}",
            where=f"region {region}",
            found=message or code,
            remedy="Too many requests are made at the same time. Try again in a minute.",
        )
    return AwsError(
        f"AWS refuses {error.operation_name}", where=f"region {region}", found=f"{code}: {message}"
    )


def _no_credentials(found: str, remark: str = "") -> NoCredentials:
    return NoCredentials(
        "nobody is logged in to AWS",
        found=found,
        expected="valid credentials",
        remedy=f"Log in (aws sso login, or aws configure) and choose the profile with AWS_PROFILE.{remark}",
    )
