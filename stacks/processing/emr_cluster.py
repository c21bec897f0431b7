"""A long-running EMR cluster on EC2 for the Spark app, which scales up and down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import CfnOutput, CfnTag
from aws_cdk import aws_emr as emr
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.kafka.access import Access
from stacks.lake.bucket import bucket_name
from stacks.network import NetworkStack
from stacks.processing.cluster_certificate import ClusterCertificate
from stacks.processing.emr_groups import EmrGroups
from stacks.processing.emr_instances import instances, scaling
from stacks.processing.emr_roles import LOGS, EmrRoles
from stacks.processing.emr_service_access import EMR_TAG
from tributary.contract.aws_names import Output

_FOR_NOTEBOOKS = ("JupyterEnterpriseGateway", "Livy")
"""What EMR Studio needs on a cluster to run a notebook's code."""

_STEPS_AT_ONCE = 10
"""A step that follows never ends, and the step that stops it must run at the same time."""


class EmrCluster(Construct):
    """The cluster with its security configuration, roles and groups.

    job_role       of steps
    notebook_role  of notebooks. None without `[aws.processing].studio`
    """

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        network: NetworkStack,
        lake_key: kms.IKey | None,
        job_access: Access,
        notebook_access: Access | None,
    ) -> None:
        super().__init__(stack, construct_id)
        processing = stack.aws.processing
        disk_key = lake_key or self._disk_key(stack)
        groups = EmrGroups(stack, "Groups", network)
        certificate = (
            ClusterCertificate(stack, "Certificate", disk_key, network.log_key) if processing.tls else None
        )
        roles = EmrRoles(
            stack,
            "Roles",
            network=network,
            groups=groups,
            disk_key=disk_key,
            certificate=certificate,
            job_access=job_access,
            notebook_access=notebook_access,
        )
        security = emr.CfnSecurityConfiguration(
            self, "Security", security_configuration=_security(lake_key, disk_key, certificate)
        )
        self.cluster = emr.CfnCluster(
            self,
            "Cluster",
            name=stack.names.resource,
            release_label=processing.release,
            applications=[
                emr.CfnCluster.ApplicationProperty(name=name)
                for name in ("Spark", *(_FOR_NOTEBOOKS if processing.studio else ()))
            ],
            configurations=_configurations(has_certificate=certificate is not None),
            security_configuration=security.ref,
            service_role=roles.service.role_arn,
            job_flow_role=roles.profile.ref,
            log_uri=f"s3://{bucket_name(stack, 'logs')}/{LOGS}/",
            ebs_root_volume_size=30,
            step_concurrency_level=_STEPS_AT_ONCE,
            visible_to_all_users=True,
            managed_scaling_policy=scaling(processing),
            instances=instances(processing, network, groups),
            tags=[CfnTag(key=EMR_TAG[0], value=EMR_TAG[1])],
        )
        # Without its permissions, the service could not terminate a cluster that failed to start.
        self.cluster.node.add_dependency(groups, *roles.ready)
        acknowledge(self.cluster, _findings(has_certificate=certificate is not None))
        self.job_role, self.notebook_role = roles.job, roles.notebook
        CfnOutput(stack, Output.EMR_CLUSTER, value=self.cluster.ref)
        CfnOutput(stack, Output.RUNTIME_ROLE, value=roles.job.role_arn)

    def _disk_key(self, stack: TributaryStack) -> kms.Key:
        """Create the disks' key, because EMR accepts only the account's keys. All data on disks is in S3."""
        return kms.Key(
            self,
            "DiskKey",
            description=f"Disks of the EMR cluster of lake {stack.lake.name}",
            enable_key_rotation=True,
            removal_policy=stack.of_data,
        )


def _security(
    lake_key: kms.IKey | None, disk_key: kms.IKey, certificate: ClusterCertificate | None
) -> Mapping[str, Any]:
    in_s3 = (
        {"EncryptionMode": "SSE-S3"}
        if lake_key is None
        else {"EncryptionMode": "SSE-KMS", "AwsKmsKey": lake_key.key_arn}
    )
    return {
        "EncryptionConfiguration": {
            "EnableAtRestEncryption": True,
            **_in_transit(certificate),
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


def _in_transit(certificate: ClusterCertificate | None) -> Mapping[str, Any]:
    if certificate is None:
        return {"EnableInTransitEncryption": False}
    return {
        "EnableInTransitEncryption": True,
        "InTransitEncryptionConfiguration": {
            "TLSCertificateConfiguration": {
                "CertificateProviderType": "PEM",
                "S3Object": certificate.s3_object,
            }
        },
    }


def _configurations(*, has_certificate: bool) -> list[emr.CfnCluster.ConfigurationProperty]:
    # The processes of a run encrypt with AES and a secret of the run. YARN's shuffle service needs it too.
    own = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
    encrypted = {} if has_certificate else own
    return [
        emr.CfnCluster.ConfigurationProperty(classification=name, configuration_properties=properties)
        for name, properties in {
            "iceberg-defaults": {"iceberg.enabled": "true"},
            # Other writers on this cluster must also keep the table version that Athena reads.
            "hudi-defaults": {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"},
            "spark-hive-site": {
                "hive.metastore.client.factory.class": (
                    "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
                )
            },
            **({} if has_certificate else {"spark-defaults": encrypted}),
            "yarn-site": {
                **encrypted,
                # A driver on a Spot instance could be lost. Managed scaling also spares an on-demand node.
                "yarn.node-labels.enabled": "true",
                "yarn.node-labels.am.default-node-label-expression": "ON_DEMAND",
            },
        }.items()
    ]


_NO_LOGIN = (
    "Nobody can log in to a node. It has no key pair, is in a private subnet, and its groups let in only "
    "EMR. Steps come through AWS's API, and each runs as an IAM role."
)


def _findings(*, has_certificate: bool) -> dict[str, str]:
    in_transit = _NESTED.format("InTransitEncryptionConfiguration") if has_certificate else _BY_SPARK
    return {
        "AwsSolutions-EMR4": _NESTED.format("LocalDiskEncryptionConfiguration"),
        "AwsSolutions-EMR5": in_transit,
        "AwsSolutions-EMR6": _NO_LOGIN,
        "HIPAA.Security-EMRKerberosEnabled": _NO_LOGIN,
        "PCI.DSS.321-EMRKerberosEnabled": _NO_LOGIN,
    }


_NESTED = (
    "The security configuration has {} where EMR expects it, below EncryptionConfiguration. The rule looks "
    "for it one level above."
)
_BY_SPARK = (
    "[aws.processing].tls is false. Spark itself encrypts the traffic between its processes, and the "
    "connections to S3, Kafka and Glue use TLS."
)
