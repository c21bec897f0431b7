"""The certificate by which an EMR cluster's nodes trust each other, which CloudFormation cannot create."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.functions import certificate as certificate_function
from stacks.functions.certificate.main import FOLDER
from stacks.lake.bucket import bucket_name
from stacks.lake_function import OutsideVpc, add_function, write_main
from stacks.processing.spark_access import bucket_arn, objects_finding

_FUNCTION = Path(certificate_function.__path__[0])


class ClusterCertificate(Construct):
    """The certificate of an EMR cluster.

    s3_object    the address of the zip in the artifacts bucket
    read_access  the permission to read it, for the nodes
    """

    def __init__(
        self, stack: TributaryStack, construct_id: str, disk_key: kms.IKey, log_key: kms.IKey | None
    ) -> None:
        super().__init__(stack, construct_id)
        signing_key = kms.Key(
            self,
            "SigningKey",
            description=f"Certificates of the EMR cluster of lake {stack.lake.name}",
            key_spec=kms.KeySpec.RSA_2048,
            key_usage=kms.KeyUsage.SIGN_VERIFY,
            removal_policy=stack.of_data,
        )
        objects = f"{bucket_arn(stack, 'artifacts')}/{FOLDER}/*"
        added = add_function(
            self,
            partial(write_main, _FUNCTION),
            OutsideVpc(),
            description="Creates the certificate of an EMR cluster",
            log="emr-certificate",
            log_key=log_key,
            permits=f"Creates the certificate of the EMR cluster of lake {stack.lake.name}",
            statements=[
                iam.PolicyStatement(
                    actions=["kms:GetPublicKey", "kms:Sign"], resources=[signing_key.key_arn]
                ),
                # S3 needs the last two if the bucket uses the same key.
                iam.PolicyStatement(
                    actions=["kms:GenerateDataKeyPair", "kms:Decrypt", "kms:GenerateDataKey"],
                    resources=[disk_key.key_arn],
                ),
                iam.PolicyStatement(actions=["s3:DeleteObjectVersion", "s3:PutObject"], resources=[objects]),
            ],
            timeout=Duration.minutes(1),
        )
        made = CustomResource(
            self,
            "Made",
            resource_type="Custom::TributaryClusterCertificate",
            service_token=added.function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={
                "Bucket": bucket_name(stack, "artifacts"),
                "Domain": _domain(stack.aws.region),
                "Name": f"EMR of {stack.names.resource}",
                "SigningKey": signing_key.key_id,
                "WrappingKey": disk_key.key_arn,
            },
        )
        self.s3_object = made.get_att_string("Object")
        self.read_access = iam.PolicyStatement(actions=["s3:GetObject"], resources=[objects])
        self.acknowledged = {
            objects_finding(stack, "artifacts", f"{FOLDER}/*"): (
                "The function chooses the object's name. The folder holds only this cluster's certificate."
            )
        }
        acknowledge(added.policy, self.acknowledged)


def _domain(region: str) -> str:
    """Return the domain of a VPC's instances (VPC User Guide, "DNS attributes for your VPC")."""
    return "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
