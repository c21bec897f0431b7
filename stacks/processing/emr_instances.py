"""An EMR cluster's instances: groups of one type each or fleets of several types, and their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import aws_emr as emr

from stacks.network import NetworkStack
from stacks.processing.emr_groups import EmrGroups
from tributary.contract.aws import Processing

_DISK_GB = 64
_SPOT_TIMEOUT_MINUTES = 10


def scaling(processing: Processing) -> emr.CfnCluster.ManagedScalingPolicyProperty:
    """Return the scaling limits. The core instances always run; only instances without data come and go."""
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


def instances(
    processing: Processing, network: NetworkStack, groups: EmrGroups
) -> emr.CfnCluster.JobFlowInstancesConfigProperty:
    """Return the instances. They keep running without a job and are in the lake's own security groups."""
    subnets = network.vpc.select_subnets(subnets=network.private.subnets).subnet_ids
    own = _fleets(processing, subnets) if processing.groups == "fleets" else _groups(processing, subnets[0])
    return emr.CfnCluster.JobFlowInstancesConfigProperty(
        **own,
        keep_job_flow_alive_when_no_steps=True,
        # The cluster has no data, and with protection it could not be replaced for a new release.
        termination_protected=False,
        unhealthy_node_replacement=True,
        emr_managed_master_security_group=groups.primary.security_group_id,
        emr_managed_slave_security_group=groups.workers.security_group_id,
        service_access_security_group=groups.service.security_group_id,
        additional_master_security_groups=[network.spark.security_group_id],
        additional_slave_security_groups=[network.spark.security_group_id],
    )


def _groups(processing: Processing, subnet: str) -> dict[str, Any]:
    def group(name: str, instance: str, count: int, *, spot: bool = False) -> Any:
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
        "task_instance_groups": [group("task", processing.task[0], 0, spot=processing.spot)],
    }


def _fleets(processing: Processing, subnets: Sequence[str]) -> dict[str, Any]:
    """Return fleets in all subnets. EMR chooses the zone that has all instances."""

    def fleet(name: str, instances: Sequence[str], count: int, *, spot: bool = False) -> Any:
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
        # Managed scaling can grow only an existing fleet, and a fleet starts with one instance.
        "task_instance_fleets": [fleet("task", processing.task, 1, spot=processing.spot)] if grows else None,
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
