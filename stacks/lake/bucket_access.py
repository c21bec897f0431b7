"""Which rights it takes to write into a bucket, and to use the key that it is encrypted with."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms


def writing(bucket: str, objects: str) -> list[iam.PolicyStatement]:
    """`bucket`: its ARN; `objects`: the ARN of those that may be written, read and deleted."""
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
            resources=[objects],
        ),
    ]


def use_of_key(key: kms.IKey | None, region: str) -> list[iam.PolicyStatement]:
    """Through S3 only. None: S3's own keys encrypt the bucket, which takes no right."""
    if key is None:
        return []
    through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{region}.amazonaws.com"}}
    actions = ["kms:Decrypt", "kms:GenerateDataKey"]
    return [iam.PolicyStatement(actions=actions, resources=[key.key_arn], conditions=through_s3)]
