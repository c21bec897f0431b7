"""The versions of a secret and their labels, as a rotation moves them.

Secrets Manager knows three labels. A fourth one is Tributary's own: it marks the version that the connector
has read. So what is left to do is known at any time, whatever ended the function that should have done it.
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from botocore.exceptions import ClientError

CURRENT, PENDING = "AWSCURRENT", "AWSPENDING"
READ = "TRIBUTARY_READ"
"""The label of the version that the connector has read."""

_LENGTH = 40
_CHARACTERS = string.ascii_letters + string.digits


class SecretsManager(Protocol):
    """The part of boto3's client `secretsmanager` that this module uses."""

    def describe_secret(self, **request: Any) -> Mapping[str, Any]: ...

    def get_secret_value(self, **request: Any) -> Mapping[str, Any]: ...

    def put_secret_value(self, **request: Any) -> Mapping[str, Any]: ...

    def update_secret_version_stage(self, **request: Any) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Version:
    """A version of the secret. Its text never shows its content."""

    id: str
    content: Mapping[str, str] = field(repr=False)
    created: datetime

    @property
    def password(self) -> str:
        return self.content["password"]


@dataclass(frozen=True)
class RotatingSecret:
    """A secret with a password under `password`."""

    client: SecretsManager
    arn: str

    def labels(self) -> dict[str, str]:
        """Return which version has each label."""
        stages = self.client.describe_secret(SecretId=self.arn)["VersionIdsToStages"]
        return {label: version for version, labels in stages.items() for label in labels}

    def read(self, version: str) -> Version | None:
        """Return a version. None: Secrets Manager has announced it, but it has no content yet."""
        try:
            found = self.client.get_secret_value(SecretId=self.arn, VersionId=version)
        except ClientError as error:
            if error.response["Error"].get("Code") == "ResourceNotFoundException":
                return None
            raise
        return Version(version, json.loads(found["SecretString"]), found["CreatedDate"])

    def read_current(self) -> Version:
        current = self.read(self.labels()[CURRENT])
        assert current is not None, "the current version has content"
        return current

    def create(self, version: str, before: Version) -> None:
        """Create a pending version like the one before, with another password of letters and digits."""
        password = "".join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))
        self.client.put_secret_value(
            SecretId=self.arn,
            ClientRequestToken=version,
            SecretString=json.dumps({**before.content, "password": password}),
            VersionStages=[PENDING],
        )

    def move(self, label: str, labels: Mapping[str, str], version: str) -> None:
        """Move a label to a version. `labels` says which one has it now."""
        former = {"RemoveFromVersionId": labels[label]} if label in labels else {}
        self.client.update_secret_version_stage(
            SecretId=self.arn, VersionStage=label, MoveToVersionId=version, **former
        )

    def remove(self, label: str, version: str) -> None:
        self.client.update_secret_version_stage(
            SecretId=self.arn, VersionStage=label, RemoveFromVersionId=version
        )
