"""The permissions to write to a bucket and to use its encryption key."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms


def writing(bucket: str, *objects: str) -> list[iam.PolicyStatement]:
    """Return the permissions to write, read and delete objects. All arguments are ARNs."""
    return [
        iam.PolicyStatement(
            actions=["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
            resources=[bucket],
        ),
        iam.PolicyStatement(
            actions=[
                "s3:AbortMultipartUpload",
                "s3:DeleteObject",
                "s3:GetObject",
                "s3:ListMultipartUploadParts",
                "s3:PutObject",
            ],
            resources=list(objects),
        ),
    ]


def use_of_key(key: kms.IKey | None, region: str) -> list[iam.PolicyStatement]:
    """Return the permissions to use the key through S3. S3's own keys (None) need no permission."""
    if key is None:
        return []
    through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{region}.amazonaws.com"}}
    actions = ["kms:Decrypt", "kms:GenerateDataKey"]
    return [iam.PolicyStatement(actions=actions, resources=[key.key_arn], conditions=through_s3)]
