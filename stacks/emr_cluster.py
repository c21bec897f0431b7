"""An EMR cluster on EC2 as the place where the Spark app runs: one that stays, and grows and shrinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import CfnOutput, CfnTag
from aws_cdk import aws_emr as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from contract.aws import Processing
from contract.aws_names import Output
from stacks.base import TributaryStack
from stacks.emr_groups import EmrGroups
from stacks.emr_roles import EMR_TAG, LOGS, EmrRoles
from stacks.findings import acknowledge
from stacks.lake import LakeStack
from stacks.network import NetworkStack

_STEPS_AT_ONCE = 10
"""One that follows never ends; others, such as a rebuild of another table, run beside it."""

_DISK_GB = 64
_SPOT_TIMEOUT_MINUTES = 10


class EmrCluster(Construct):
    """The cluster with its security configuration, roles and groups. Steps run as the runtime role."""

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        network: NetworkStack,
        lake_stack: LakeStack,
        job_access: Sequence[iam.PolicyStatement],
    ) -> None:
        super().__init__(stack, construct_id)
        processing = stack.aws.processing
        disk_key = lake_stack.key or self._disk_key(stack)
        groups = EmrGroups(stack, "Groups", network)
        roles = EmrRoles(
            stack,
            "Roles",
            network=network,
            lake_stack=lake_stack,
            groups=groups,
            disk_key=disk_key,
            job_access=job_access,
        )
        security = emr.CfnSecurityConfiguration(
            self, "Security", security_configuration=_security(lake_stack.key, disk_key)
        )
        self.cluster = emr.CfnCluster(
            self,
            "Cluster",
            name=stack.names.resource,
            release_label=processing.release,
            applications=[emr.CfnCluster.ApplicationProperty(name="Spark")],
            configurations=_configurations(),
            security_configuration=security.ref,
            service_role=roles.service.role_arn,
            job_flow_role=roles.profile.ref,
            log_uri=f"s3://{lake_stack.logs.bucket_name}/{LOGS}/",
            ebs_root_volume_size=30,
            step_concurrency_level=_STEPS_AT_ONCE,
            visible_to_all_users=True,
            managed_scaling_policy=_scaling(processing),
            instances=_instances(processing, network, groups),
            tags=[CfnTag(key=EMR_TAG[0], value=EMR_TAG[1])],
        )
        # Without its rights the service could not end a cluster whose start has failed.
        self.cluster.node.add_dependency(groups, *roles.ready)
        acknowledge(self.cluster, _FINDINGS)
        CfnOutput(stack, Output.EMR_CLUSTER, value=self.cluster.ref)
        CfnOutput(stack, Output.RUNTIME_ROLE, value=roles.job.role_arn)

    def _disk_key(self, stack: TributaryStack) -> kms.Key:
        """EMR encrypts disks with keys of the account's only. They hold nothing that is not in S3."""
        return kms.Key(
            self,
            "DiskKey",
            description=f"Disks of the EMR cluster of lake {stack.lake.name}",
            enable_key_rotation=True,
            removal_policy=stack.of_data,
        )


def _security(lake_key: kms.IKey | None, disk_key: kms.IKey) -> Mapping[str, Any]:
    """Encryption at rest is EMR's. In transit it is Spark's own (`_configurations`): EMR's needs a private
    key in S3, and no template can hold one."""
    in_s3 = (
        {"EncryptionMode": "SSE-S3"}
        if lake_key is None
        else {"EncryptionMode": "SSE-KMS", "AwsKmsKey": lake_key.key_arn}
    )
    return {
        "EncryptionConfiguration": {
            "EnableInTransitEncryption": False,
            "EnableAtRestEncryption": True,
            "AtRestEncryptionConfiguration": {
                "S3EncryptionConfiguration": in_s3,
                "LocalDiskEncryptionConfiguration": {
                    "EncryptionKeyProviderType": "AwsKms",
                    "AwsKmsKey": disk_key.key_arn,
                    "EnableEbsEncryption": True,
                },
            },
        },
        "InstanceMetadataServiceConfiguration": {
            "MinimumInstanceMetadataServiceVersion": 2,
            "HttpPutResponseHopLimit": 1,
        },
        "AuthorizationConfiguration": {"IAMConfiguration": {"EnableApplicationScopedIAMRole": True}},
    }


def _configurations() -> list[emr.CfnCluster.ConfigurationProperty]:
    return [
        emr.CfnCluster.ConfigurationProperty(classification=name, configuration_properties=properties)
        for name, properties in {
            "iceberg-defaults": {"iceberg.enabled": "true"},
            # Whatever else writes a table here leaves it in the version that Athena reads.
            "hudi-defaults": {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"},
            "spark-hive-site": {
                "hive.metastore.client.factory.class": (
                    "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
                )
            },
            # AES between the processes of a run, by a secret of its own; YARN's shuffle service has to know.
            "spark-defaults": {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"},
            "yarn-site": {
                "spark.authenticate": "true",
                "spark.network.crypto.enabled": "true",
                # A driver would end with the Spot instance that it is on.
                "yarn.node-labels.enabled": "true",
                "yarn.node-labels.am.default-node-label-expression": "CORE",
            },
        }.items()
    ]


def _scaling(processing: Processing) -> emr.CfnCluster.ManagedScalingPolicyProperty:
    is_fleet = processing.groups == "fleets"
    always, most = processing.core_count, processing.units_max
    return emr.CfnCluster.ManagedScalingPolicyProperty(
        compute_limits=emr.CfnCluster.ComputeLimitsProperty(
            unit_type="InstanceFleetUnits" if is_fleet else "Instances",
            minimum_capacity_units=always,
            maximum_capacity_units=most,
            maximum_core_capacity_units=always,
            maximum_on_demand_capacity_units=always if processing.spot else most,
        )
    )


def _instances(
    processing: Processing, network: NetworkStack, groups: EmrGroups
) -> emr.CfnCluster.JobFlowInstancesConfigProperty:
    subnets = network.vpc.select_subnets(subnets=network.private.subnets).subnet_ids
    own = _fleets(processing, subnets) if processing.groups == "fleets" else _groups(processing, subnets[0])
    return emr.CfnCluster.JobFlowInstancesConfigProperty(
        **own,
        keep_job_flow_alive_when_no_steps=True,
        # It holds nothing; protected, it could not be replaced by one of another release.
        termination_protected=False,
        unhealthy_node_replacement=True,
        emr_managed_master_security_group=groups.primary.security_group_id,
        emr_managed_slave_security_group=groups.workers.security_group_id,
        service_access_security_group=groups.service.security_group_id,
        additional_master_security_groups=[network.spark.security_group_id],
        additional_slave_security_groups=[network.spark.security_group_id],
    )


def _groups(processing: Processing, subnet: str) -> dict[str, Any]:
    def group(name: str, instance: str, count: int, spot: bool = False) -> Any:
        return emr.CfnCluster.InstanceGroupConfigProperty(
            name=name,
            instance_type=instance,
            instance_count=count,
            market="SPOT" if spot else "ON_DEMAND",
            ebs_configuration=_disks(),
        )

    return {
        "ec2_subnet_id": subnet,
        "master_instance_group": group("primary", processing.primary, 1),
        "core_instance_group": group("core", processing.core, processing.core_count),
        "task_instance_groups": [group("task", processing.task[0], 0, processing.spot)],
    }


def _fleets(processing: Processing, subnets: Sequence[str]) -> dict[str, Any]:
    """EMR takes the zone that has all instances."""

    def fleet(name: str, instances: Sequence[str], count: int, spot: bool = False) -> Any:
        specifications = emr.CfnCluster.InstanceFleetProvisioningSpecificationsProperty(
            on_demand_specification=emr.CfnCluster.OnDemandProvisioningSpecificationProperty(
                allocation_strategy="lowest-price"
            ),
            spot_specification=emr.CfnCluster.SpotProvisioningSpecificationProperty(
                allocation_strategy="price-capacity-optimized",
                timeout_action="SWITCH_TO_ON_DEMAND",
                timeout_duration_minutes=_SPOT_TIMEOUT_MINUTES,
            )
            if spot
            else None,
        )
        return emr.CfnCluster.InstanceFleetConfigProperty(
            name=name,
            target_on_demand_capacity=0 if spot else count,
            target_spot_capacity=count if spot else 0,
            launch_specifications=specifications,
            instance_type_configs=[
                emr.CfnCluster.InstanceTypeConfigProperty(
                    instance_type=instance, weighted_capacity=1, ebs_configuration=_disks()
                )
                for instance in instances
            ],
        )

    grows = processing.units_max > processing.core_count
    return {
        "ec2_subnet_ids": list(subnets),
        "master_instance_fleet": fleet("primary", [processing.primary], 1),
        "core_instance_fleet": fleet("core", [processing.core], processing.core_count),
        # Managed scaling grows a fleet that there is, and a fleet begins with an instance.
        "task_instance_fleets": [fleet("task", processing.task, 1, processing.spot)] if grows else None,
    }


def _disks() -> emr.CfnCluster.EbsConfigurationProperty:
    return emr.CfnCluster.EbsConfigurationProperty(
        ebs_block_device_configs=[
            emr.CfnCluster.EbsBlockDeviceConfigProperty(
                volume_specification=emr.CfnCluster.VolumeSpecificationProperty(
                    volume_type="gp3", size_in_gb=_DISK_GB
                )
            )
        ]
    )


_FINDINGS: dict[str, str] = {}
