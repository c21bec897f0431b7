"""A lock of a deployed lake, for one process at a time of any machine: a small object that is renewed.

Amazon S3 can write an object under a condition (user guide, "Conditional writes"): only if there is none yet,
or only if the present one has a certain ETag. So of two processes, one gets the lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import HeadObjectOutputTypeDef

LEASE_SECONDS = 300.0
"""After this time without a renewal, the holder counts as gone, and another process may take the lock."""
RENEWAL_SECONDS = 60.0

_STATE, _HELD, _FREE = "state", "held", "free"
_NOT_WRITTEN = {"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"}
"""What S3 answers to a write whose condition does not hold, or whose object is gone."""


@dataclass(frozen=True)
class Lease:
    """The lock for some work on the lake whose quarantine is at `location`, a bucket with any prefix."""

    s3: S3Client
    location: str
    work: str

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Yield whether this process holds the lock while the context lasts. Raises boto3's errors."""
        etag = self._take()
        if etag is None:
            yield False
            return
        over, lock = threading.Event(), _HeldLock(self, etag)
        renewal = threading.Thread(target=lock.renew, args=(over,), name=f"lease {self.work}", daemon=True)
        renewal.start()
        try:
            yield True
        finally:
            over.set()
            renewal.join()
            lock.give_back()

    def write(self, state: str, *, instead_of: str | None) -> str | None:
        """Write the lock, and return its ETag; None: another process has written it.

        instead_of  the ETag that it has to have now; None: there must be no lock

        Raises boto3's errors.
        """
        # Each write has another content, and with it another ETag.
        content, found = os.urandom(8).hex().encode(), {_STATE: state}
        try:
            if instead_of is None:
                answer = self.s3.put_object(
                    Bucket=self._bucket, Key=self._key, Body=content, Metadata=found, IfNoneMatch="*"
                )
            else:
                answer = self.s3.put_object(
                    Bucket=self._bucket, Key=self._key, Body=content, Metadata=found, IfMatch=instead_of
                )
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_WRITTEN:
                return None
            raise
        return answer["ETag"]

    def _take(self) -> str | None:
        etag = self.write(_HELD, instead_of=None)
        if etag is not None:
            return etag
        found = self.s3.head_object(Bucket=self._bucket, Key=self._key)
        if found["Metadata"].get(_STATE) != _FREE and _age(found) < LEASE_SECONDS:
            return None
        return self.write(_HELD, instead_of=found["ETag"])

    @property
    def _bucket(self) -> str:
        return self.location.partition("/")[0]

    @property
    def _key(self) -> str:
        prefix = self.location.partition("/")[2]
        return "/".join(filter(None, (prefix, "_locks", self.work)))


@dataclass
class _HeldLock:
    """A lock that this process has taken. `etag` is None once another one has taken it over."""

    lease: Lease
    etag: str | None

    def renew(self, over: threading.Event) -> None:
        while self.etag is not None and not over.wait(RENEWAL_SECONDS):
            try:
                self.etag = self.lease.write(_HELD, instead_of=self.etag)
            except (BotoCoreError, ClientError):
                continue  # The lock is good for some minutes, and the next attempt may succeed.

    def give_back(self) -> None:
        if self.etag is None:
            return
        try:
            self.lease.write(_FREE, instead_of=self.etag)
        except (BotoCoreError, ClientError):
            return  # It ends by itself after some minutes.


def _age(found: HeadObjectOutputTypeDef) -> float:
    """Return the seconds since a write. Both times are S3's, because the clocks of machines differ."""
    now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
    return (now - found["LastModified"]).total_seconds()
