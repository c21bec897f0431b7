"""A small machine in the private network, for a person's SQL client: reached through Systems Manager only."""

from __future__ import annotations

from aws_cdk import CfnOutput
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge

INSTANCE = "t4g.nano"


class AdminHost(Construct):
    """The machine. `group` is its security group, into which nobody can connect.

    Nobody logs in with SSH: it has no key pair and no open port. Systems Manager opens sessions, and IAM
    decides who may have one.
    """

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        vpc: ec2.IVpc,
        subnets: ec2.SubnetSelection,
        group: ec2.SecurityGroup,
    ) -> None:
        super().__init__(stack, construct_id)
        role = iam.Role(
            self,
            "Role",
            description=f"What the admin host of lake {stack.lake.name} may do",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name("AmazonSSMManagedInstanceCore")],
        )
        acknowledge(role, _POLICY_OF_SSM)
        instance = ec2.Instance(
            self,
            "Instance",
            instance_name=f"{stack.names.resource}-admin",
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=list(subnets.subnets or ())[:1]),
            security_group=group,
            role=role,
            instance_type=ec2.InstanceType(INSTANCE),
            machine_image=ec2.MachineImage.latest_amazon_linux2023(cpu_type=ec2.AmazonLinuxCpuType.ARM_64),
            require_imdsv2=True,
            detailed_monitoring=True,
            ebs_optimized=True,
            block_devices=[
                ec2.BlockDevice(
                    device_name="/dev/xvda",
                    volume=ec2.BlockDeviceVolume.ebs(
                        8, encrypted=True, volume_type=ec2.EbsDeviceVolumeType.GP3
                    ),
                )
            ],
        )
        acknowledge(instance, _HOLDS_NOTHING)
        CfnOutput(
            stack,
            "AdminHostId",
            description="The instance for aws ssm start-session --target",
            value=instance.instance_id,
        )


_POLICY_OF_SSM = {
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/AmazonSSMManagedInstanceCore]": (
        "AWS keeps this policy in step with what the agent of Systems Manager needs. It gives no access to "
        "the lake's data."
    )
}
_HOLDS_NOTHING = {
    "AwsSolutions-EC29": "The machine holds nothing. It can be replaced at any time.",
}
