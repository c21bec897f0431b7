"""The objects through which keys reach an erasure on AWS and its report comes back, and their removal.

The buckets are versioned, so a deletion alone would keep the keys as a noncurrent version.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from tributary.contract.erasure import DAYS_OF_LEFTOVERS, ERASURES_FOLDER, KEYS_FILE, REPORT_FILE
from tributary.contract.errors import TributaryError
from tributary.local.startup import noted_interrupts
from tributary.operations.aws.versions import Folder, VersionsLeft, remove_all_versions
from tributary.operations.erasure import Key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class KeysLeft(TributaryError):
    """Objects with keys are still in the quarantine bucket."""


@dataclass(frozen=True)
class ErasureObjects:
    """The objects of one erasure, below a folder with a random name in the quarantine bucket.

    bucket, folder  the folder has no slash at its end
    """

    s3: S3Client
    bucket: str
    folder: str

    @property
    def keys_uri(self) -> str:
        return f"s3://{self.bucket}/{self.folder}/{KEYS_FILE}"

    @property
    def report_uri(self) -> str:
        return f"s3://{self.bucket}/{self.folder}/{REPORT_FILE}"

    def read_report(self) -> str | None:
        """Return the report, one JSON object a line, or None if the app has written none."""
        try:
            found = self.s3.get_object(Bucket=self.bucket, Key=f"{self.folder}/{REPORT_FILE}")
        except self.s3.exceptions.NoSuchKey:
            return None
        return found["Body"].read().decode()

    def write_keys(self, keys: Sequence[Key]) -> None:
        self._write(json.dumps([dict(key) for key in keys]).encode())

    def check_removal(self) -> None:
        """Check that the caller may remove versions, with an empty object.

        Raises VersionsLeft and boto3's errors.
        """
        self._write(b"")
        remove_all_versions(self.s3, Folder(self.bucket, self.folder))

    def remove(self) -> None:
        """Remove all versions of all objects. Raises KeysLeft."""
        try:
            remove_all_versions(self.s3, Folder(self.bucket, self.folder))
        except (BotoCoreError, ClientError, VersionsLeft) as error:
            raise KeysLeft(
                "The keys could not be removed",
                where=f"s3://{self.bucket}/{self.folder}/",
                found=str(error),
                remedy="Remove all versions of the objects in this folder. Otherwise the bucket removes them "
                f"{2 * DAYS_OF_LEFTOVERS} to {2 * (DAYS_OF_LEFTOVERS + 1)} days later.",
            ) from error

    def _write(self, content: bytes) -> None:
        self.s3.put_object(
            Bucket=self.bucket,
            Key=f"{self.folder}/{KEYS_FILE}",
            Body=content,
            ContentType="application/json",
        )


@contextmanager
def keys_on_aws(s3: S3Client, quarantine: str, keys: Sequence[Key]) -> Iterator[ErasureObjects]:
    """Yield the objects with the keys, and remove them at the end of the context, however it ends.

    quarantine  a bucket, or a bucket and a prefix

    No key leaves this machine unless the caller may remove it again. Raises KeysLeft, VersionsLeft and
    boto3's errors.
    """
    bucket, _, prefix = quarantine.partition("/")
    folder = "/".join(filter(None, (prefix, ERASURES_FOLDER, uuid.uuid4().hex)))
    objects = ErasureObjects(s3, bucket, folder)
    objects.check_removal()
    try:
        objects.write_keys(keys)
        yield objects
    finally:
        with noted_interrupts():  # an impatient second Ctrl-C leaves no key
            objects.remove()
