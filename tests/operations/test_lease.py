"""Of all processes on all machines, one at a time holds a lock of a deployed lake."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.aws_double import running_moto
from tests.cli.deployed import REGION
from tributary.operations.aws import lease as leases
from tributary.operations.aws.lease import LEASE_SECONDS, Lease

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class Bucket:
    """A bucket of quarantine, on a server: moto's answers within a process have no date."""

    s3: S3Client
    name: str

    def lock(self, work: str = "verify", prefix: str = "") -> Lease:
        return Lease(self.s3, f"{self.name}{prefix}", work)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_moto() as url:
        yield url


@pytest.fixture
def bucket(server: str) -> Bucket:
    client = boto3.client(
        "s3", REGION, endpoint_url=server, aws_access_key_id="key", aws_secret_access_key="secret"
    )
    name = f"quarantine-{secrets.token_hex(4)}"
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    return Bucket(client, name)


def test_a_lock_is_held_by_one_and_free_after_its_end_also_after_an_error(bucket: Bucket) -> None:
    lock = bucket.lock(prefix="/lake")
    with lock.held() as first, lock.held() as second:
        assert (first, second) == (True, False)
    failing = ExitStack()
    assert failing.enter_context(lock.held())
    assert not failing.__exit__(ValueError, ValueError("work"), None)
    with lock.held() as at_last:
        assert at_last
    (found,) = bucket.s3.list_objects_v2(Bucket=bucket.name)["Contents"]
    assert found["Key"] == "lake/_locks/verify"


def test_other_work_and_other_lakes_have_locks_of_their_own(bucket: Bucket) -> None:
    with (
        bucket.lock().held() as one,
        bucket.lock("snapshots").held() as two,
        bucket.lock(prefix="/other").held() as three,
    ):
        assert (one, two, three) == (True, True, True)


def test_of_many_that_ask_at_once_one_gets_the_lock(bucket: Bucket) -> None:
    lock, asked = bucket.lock(), threading.Barrier(8)

    def ask(_: int) -> bool:
        asked.wait()
        with lock.held() as is_mine:
            asked.wait()
            return is_mine

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 1


def test_only_a_lock_that_was_not_renewed_for_long_is_taken_over(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, ages = bucket.lock(), iter([LEASE_SECONDS - 1, LEASE_SECONDS])
    with lock.held():
        monkeypatch.setattr(leases, "_age", lambda _: next(ages))
        with lock.held() as too_early:
            assert not too_early
        with lock.held() as late:
            assert late
            monkeypatch.setattr(leases, "_age", lambda _: 0.0)
    with lock.held() as free:
        assert free, "the second holder gave it back, and the first no longer had it"


def test_who_lost_a_lock_does_not_take_it_from_the_next_holder(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = bucket.lock()
    slept = lock.held()
    assert slept.__enter__()
    monkeypatch.setattr(leases, "_age", lambda _: LEASE_SECONDS)
    with lock.held() as next_holder:
        assert next_holder
        monkeypatch.setattr(leases, "_age", lambda _: 0.0)
        slept.__exit__(None, None, None)
        with lock.held() as third:
            assert not third


def test_a_lock_is_renewed_until_its_end(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEWAL_SECONDS", 0.02)
    lock, written = bucket.lock(), threading.Semaphore(0)
    put = bucket.s3.put_object

    def counted(**options: Any) -> Any:
        written.release()
        return put(**options)

    monkeypatch.setattr(bucket.s3, "put_object", counted)
    with lock.held():
        for _ in range(4):
            assert written.acquire(timeout=30)


def test_a_renewal_that_s3_refuses_is_tried_again(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEWAL_SECONDS", 0.02)
    lock, put = bucket.lock(), bucket.s3.put_object
    refused, renewed = threading.Semaphore(0), threading.Event()

    def away(**options: Any) -> Any:
        if "IfMatch" in options and not renewed.is_set():
            refused.release()
            raise ClientError({"Error": {"Code": "SlowDown", "Message": "later"}}, "PutObject")
        return put(**options)

    monkeypatch.setattr(bucket.s3, "put_object", away)
    with lock.held():
        for _ in range(2):
            assert refused.acquire(timeout=30)
        renewed.set()
        with lock.held() as another:
            assert not another


def test_the_age_of_a_lock_is_told_by_s3_alone(bucket: Bucket) -> None:
    with bucket.lock().held():
        found = bucket.s3.head_object(Bucket=bucket.name, Key="_locks/verify")
        earlier = found["LastModified"] - timedelta(minutes=4)
        assert leases._age({**found, "LastModified": earlier}) == pytest.approx(240, abs=30)
