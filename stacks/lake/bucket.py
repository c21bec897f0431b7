"""The lake's buckets: encrypted, private, logged, and with lifecycle rules."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from tributary.contract.aws_names import BucketKind
from tributary.contract.erasure import DAYS_OF_UNDOING


class LakeBucket(s3.Bucket):
    """A bucket that only its own account can reach, and only over TLS.

    The bucket is versioned, so an accidental deletion can be undone.

    key   None: S3's own keys encrypt it
    logs  the bucket for S3's access logs
    """

    def __init__(
        self,
        stack: TributaryStack,
        kind: BucketKind,
        *,
        logs: s3.IBucket,
        key: kms.IKey | None,
        rules: Sequence[s3.LifecycleRule] = (),
    ) -> None:
        super().__init__(
            stack,
            kind.title(),
            bucket_name=bucket_name(stack, kind),
            encryption=s3.BucketEncryption.S3_MANAGED if key is None else s3.BucketEncryption.KMS,
            encryption_key=key,
            # With a bucket key, S3 calls KMS once for many objects.
            bucket_key_enabled=None if key is None else True,
            versioned=True,
            server_access_logs_bucket=logs,
            server_access_logs_prefix=f"access/{kind}/",
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="Undo",
                    noncurrent_version_expiration=Duration.days(DAYS_OF_UNDOING),
                    expired_object_delete_marker=True,
                    abort_incomplete_multipart_upload_after=Duration.days(DAYS_OF_UNDOING),
                ),
                *rules,
            ],
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            removal_policy=stack.of_data,
            auto_delete_objects=stack.aws.deletes_data,
        )
        acknowledge(self, _NO_SECOND_REGION)
        if key is None:
            acknowledge(self, _S3_KEYS)


class LogBucket(s3.Bucket):
    """The bucket for access logs of the other buckets and for Spark's logs. Its objects expire."""

    def __init__(self, stack: TributaryStack) -> None:
        super().__init__(
            stack,
            "Logs",
            bucket_name=bucket_name(stack, "logs"),
            encryption=s3.BucketEncryption.S3_MANAGED,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="Expire",
                    expiration=Duration.days(stack.aws.storage.logs_kept.days),
                    abort_incomplete_multipart_upload_after=Duration.days(DAYS_OF_UNDOING),
                )
            ],
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            removal_policy=stack.of_data,
            auto_delete_objects=stack.aws.deletes_data,
        )
        acknowledge(self, _NO_SECOND_REGION | _S3_KEYS_FOR_LOGS)
        acknowledge(self, _in_packs("S3BucketVersioningEnabled", _WRITTEN_ONCE))
        skip(self, {"CKV_AWS_21": _WRITTEN_ONCE, "CKV_AWS_18": _ENDLESS})


def bucket_name(stack: TributaryStack, kind: BucketKind) -> str:
    return stack.names.bucket(kind, Aws.ACCOUNT_ID, stack.aws.region)


def _in_packs(rule: str, reason: str) -> dict[str, str]:
    return {f"{pack}-{rule}": reason for pack in ("NIST.800.53.R5", "HIPAA.Security", "PCI.DSS.321")}


_NO_SECOND_REGION = _in_packs(
    "S3BucketReplicationEnabled",
    "S3 keeps each object in three availability zones, and versions undo a deletion. A lake is in one "
    "region. After the loss of a region, it can be rebuilt elsewhere from the source database.",
)
_S3_KEYS = _in_packs(
    "S3DefaultEncryptionKMS",
    'S3 encrypts each object with its own keys, because [aws.storage].encryption is "s3". With "kms", a key '
    "of the account encrypts them.",
)
_S3_KEYS_FOR_LOGS = _in_packs(
    "S3DefaultEncryptionKMS",
    "S3 delivers access logs only to a bucket that S3's own keys encrypt (user guide, Enabling server access "
    "logging).",
)
_WRITTEN_ONCE = (
    "Each log file is written once, under its own name, and expires. It has no earlier version to restore."
)
_ENDLESS = "This bucket holds the access logs. Logging access to it would never end."
