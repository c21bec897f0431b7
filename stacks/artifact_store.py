"""Where a pipeline keeps what one step hands to the next: an encrypted bucket whose objects expire."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.checks.findings import acknowledge, skip

_KEPT = Duration.days(30)
"""Longer than an approval can wait: CodePipeline ends it after seven days."""

_UNDOING = Duration.days(1)
_LOGS_KEPT = Duration.days(90)
_PACKS = ("NIST.800.53.R5", "HIPAA.Security", "PCI.DSS.321")


class ArtifactStore(Construct):
    """The bucket of a pipeline's artifacts, its key, and the bucket of its access logs.

    Roles of other accounts may read the artifacts only if a key of this account encrypts them. The builds use
    the same key. The names are CloudFormation's own, so nothing is in the way of a second deployment.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        key = kms.Key(
            self,
            "Key",
            description="Artifacts of the pipeline that deploys a lake",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        self.bucket = s3.Bucket(
            self,
            "Artifacts",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            bucket_key_enabled=True,
            versioned=True,
            server_access_logs_bucket=self._logs(),
            server_access_logs_prefix="access/artifacts/",
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="Expire",
                    expiration=_KEPT,
                    noncurrent_version_expiration=_UNDOING,
                    abort_incomplete_multipart_upload_after=_UNDOING,
                )
            ],
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        acknowledge(self.bucket, {f"{pack}-S3BucketReplicationEnabled": _FROM_COMMITS for pack in _PACKS})

    def _logs(self) -> s3.Bucket:
        logs = s3.Bucket(
            self,
            "Logs",
            encryption=s3.BucketEncryption.S3_MANAGED,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="Expire",
                    expiration=_LOGS_KEPT,
                    abort_incomplete_multipart_upload_after=_UNDOING,
                )
            ],
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        for pack in _PACKS:
            acknowledge(
                logs,
                {
                    f"{pack}-S3BucketReplicationEnabled": _ONLY_LOGS,
                    f"{pack}-S3BucketVersioningEnabled": _ONLY_LOGS,
                    f"{pack}-S3DefaultEncryptionKMS": _BY_S3,
                },
            )
        skip(logs, {"CKV_AWS_21": _ONLY_LOGS, "CKV_AWS_18": _ENDLESS})
        return logs


_FROM_COMMITS = "The pipeline makes each artifact again from the commit, in any region."
_ONLY_LOGS = "The bucket holds only access logs. Each is written once, under its own name, and expires."
_BY_S3 = (
    "S3 delivers access logs only to a bucket that S3's own keys encrypt (user guide, Enabling server access "
    "logging)."
)
_ENDLESS = "This bucket holds the access logs. Logging access to it would never end."
