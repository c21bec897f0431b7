"""Access to the lake's buckets: the endpoint and credentials, for each library that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Protocol

from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

    from tributary.aws.session import Credentials

REGION = "us-east-1"
"""A local S3 server is in no region, but a signed request must name one."""


class LakeUnreadable(TributaryError):
    """The buckets of a lake cannot be read."""


@contextmanager
def told_unreadable(uri: str) -> Iterator[None]:
    """Turn S3's errors in the context into LakeUnreadable. `uri` names what is read."""
    try:
        yield
    except OSError as error:  # PyArrow raises it for every error response.
        raise LakeUnreadable(
            "The files of the lake cannot be read",
            where=uri,
            found=str(error),
            remedy="Check that S3 answers, and that your credentials may list and read this bucket.",
        ) from error


class LakeFiles(Protocol):
    """The S3 server with the buckets of a lake."""

    @property
    def filesystem(self) -> S3FileSystem:
        """PyArrow's client. Its paths begin with a bucket's name."""

    @property
    def hudi_options(self) -> dict[str, str]:
        """The storage options of hudi-rs, which passes them to the object_store crate."""


@dataclass(frozen=True)
class LocalFiles:
    """An S3 server on this machine, by URL (`http://127.0.0.1:9000`)."""

    endpoint: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @cached_property
    def filesystem(self) -> S3FileSystem:
        return _s3_filesystem(self.access_key, self.secret_key, None, REGION, self.endpoint)

    @property
    def hudi_options(self) -> dict[str, str]:
        return _hudi_options(self.access_key, self.secret_key, None, REGION, self.endpoint)


@dataclass(frozen=True)
class AwsFiles:
    """S3 in a region of AWS. The credentials are read for each use, because they may expire.

    endpoint  None for AWS's own S3, else the S3 server that the user's AWS settings name
    """

    region: str
    read_credentials: Callable[[], Credentials] = field(repr=False)
    endpoint: str | None = None

    @property
    def filesystem(self) -> S3FileSystem:
        return _s3_filesystem(*self.read_credentials(), self.region, self.endpoint)

    @property
    def hudi_options(self) -> dict[str, str]:
        return _hudi_options(*self.read_credentials(), self.region, self.endpoint)


@cache
def _s3_filesystem(
    access_key: str, secret_key: str, token: str | None, region: str, endpoint: str | None
) -> S3FileSystem:
    from pyarrow.fs import S3FileSystem

    scheme, _, host = (endpoint or "https://").partition("://")
    return S3FileSystem(
        access_key=access_key,
        secret_key=secret_key,
        session_token=token,
        region=region,
        scheme=scheme,
        endpoint_override=host or None,
    )


def _hudi_options(
    access_key: str, secret_key: str, token: str | None, region: str, endpoint: str | None
) -> dict[str, str]:
    options = {
        "aws_access_key_id": access_key,
        "aws_secret_access_key": secret_key,
        "aws_region": region,
        "aws_virtual_hosted_style_request": "false",
    }
    if token is not None:
        options["aws_session_token"] = token
    if endpoint is not None:
        options["aws_endpoint"] = endpoint
        options["aws_allow_http"] = str(endpoint.startswith("http://")).lower()
    return options
