"""The certificate by which an EMR cluster's nodes trust each other, which CloudFormation cannot create."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, acknowledge_function
from stacks.function_code import NO_CALL_LOST, ONE_CALL
from stacks.functions import certificate as certificate_function
from stacks.functions.certificate.main import FOLDER
from stacks.lake.bucket import bucket_name
from stacks.log_groups import LakeLogGroup
from stacks.processing.spark_access import bucket_arn, objects_finding

_CODE = Path(certificate_function.__path__[0]) / "main.py"


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
        logs = LakeLogGroup(self, "Logs", "emr-certificate", log_key)
        objects = f"{bucket_arn(stack, 'artifacts')}/{FOLDER}/*"
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            description=f"Creates the certificate of the EMR cluster of lake {stack.lake.name}",
            roles=[role],
            statements=[
                iam.PolicyStatement(
                    actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[logs.log_group_arn]
                ),
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
        )
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(_CODE, Path(folder) / "main.py")
            function = lambda_.Function(
                self,
                "Function",
                description="Creates the certificate of an EMR cluster",
                runtime=lambda_.Runtime.PYTHON_3_14,
                architecture=lambda_.Architecture.ARM_64,
                handler="main.handle",
                code=lambda_.Code.from_asset(folder),
                role=role.without_policy_updates(),
                log_group=logs,
                timeout=Duration.minutes(1),
                memory_size=256,
            )
        made = CustomResource(
            self,
            "Made",
            resource_type="Custom::TributaryClusterCertificate",
            service_token=function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={
                "Bucket": bucket_name(stack, "artifacts"),
                "Domain": _domain(stack.aws.region),
                "Name": f"EMR of {stack.names.resource}",
                "SigningKey": signing_key.key_id,
                "WrappingKey": disk_key.key_arn,
            },
        )
        made.node.add_dependency(policy)
        self.s3_object = made.get_att_string("Object")
        self.read_access = iam.PolicyStatement(actions=["s3:GetObject"], resources=[objects])
        self.acknowledged = {
            objects_finding(stack, "artifacts", f"{FOLDER}/*"): (
                "The function chooses the object's name. The folder holds only this cluster's certificate."
            )
        }
        acknowledge(policy, self.acknowledged)
        acknowledge_function(function, no_reservation=ONE_CALL, no_dead_letters=NO_CALL_LOST, no_vpc=_OUTSIDE)


def _domain(region: str) -> str:
    """Return the domain of a VPC's instances (VPC User Guide, "DNS attributes for your VPC")."""
    return "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"


_OUTSIDE = "It calls only AWS's APIs, and nothing in the VPC."
