"""How the lake's buckets are reached: which endpoint, which credentials, for each library that reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

REGION = "us-east-1"
"""Only signed with: a local S3 server is in no region."""


@dataclass(frozen=True)
class LakeFiles:
    """An S3 server of our own, by URL (`http://127.0.0.1:9000`)."""

    endpoint: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @cached_property
    def filesystem(self) -> S3FileSystem:
        """Paths in it start with the bucket's name."""
        from pyarrow.fs import S3FileSystem

        scheme, _, host = self.endpoint.partition("://")
        return S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            endpoint_override=host,
            scheme=scheme,
            region=REGION,
        )

    @property
    def hudi_options(self) -> dict[str, str]:
        """The storage options of hudi-rs, which are those of the object_store crate."""
        return {
            "aws_endpoint": self.endpoint,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_region": REGION,
            "aws_allow_http": "true",
            "aws_virtual_hosted_style_request": "false",
        }
