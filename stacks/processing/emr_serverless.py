"""An EMR Serverless application for the Spark app, which costs nothing without a job."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.kafka.access import Access
from stacks.lake.bucket import bucket_name
from stacks.network import NetworkStack
from stacks.processing.spark_access import bucket_arn, objects_finding
from tributary.contract.aws_names import Output

_CPUS, _MEMORY_GB, _DISK_GB = 2, 8, 20
"""The size of a worker."""

_IDLE_MINUTES = 15
_LOGS = "emr-serverless"


class EmrServerless(Construct):
    """The application, and the roles of its job runs and notebooks, with permission to write logs.

    notebook_role  None without `[aws.processing].studio`
    """

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        network: NetworkStack,
        job_access: Access,
        notebook_access: Access | None,
    ) -> None:
        super().__init__(stack, construct_id)
        processing = stack.aws.processing
        self.application = emr.CfnApplication(
            self,
            "Application",
            name=stack.names.resource,
            release_label=processing.release,
            type="Spark",
            architecture=processing.architecture.upper(),
            network_configuration=emr.CfnApplication.NetworkConfigurationProperty(
                subnet_ids=network.vpc.select_subnets(subnets=network.private.subnets).subnet_ids,
                security_group_ids=[network.spark.security_group_id],
            ),
            initial_capacity=[
                _workers("Driver", 1),
                _workers("Executor", processing.core_count),
            ],
            maximum_capacity=emr.CfnApplication.MaximumAllowedResourcesProperty(
                cpu=f"{_CPUS * processing.units_max} vCPU",
                memory=f"{_MEMORY_GB * processing.units_max} GB",
                disk=f"{_DISK_GB * processing.units_max} GB",
            ),
            auto_start_configuration=emr.CfnApplication.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=emr.CfnApplication.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=_IDLE_MINUTES
            ),
            interactive_configuration=(
                emr.CfnApplication.InteractiveConfigurationProperty(studio_enabled=True)
                if processing.studio
                else None
            ),
            monitoring_configuration=emr.CfnApplication.MonitoringConfigurationProperty(
                s3_monitoring_configuration=emr.CfnApplication.S3MonitoringConfigurationProperty(
                    log_uri=f"s3://{bucket_name(stack, 'logs')}/{_LOGS}/"
                ),
                managed_persistence_monitoring_configuration=(
                    emr.CfnApplication.ManagedPersistenceMonitoringConfigurationProperty(enabled=False)
                ),
            ),
        )
        service = f"arn:{Aws.PARTITION}:emr-serverless:{stack.aws.region}:{Aws.ACCOUNT_ID}"
        application = f"{service}:/applications/{self.application.attr_application_id}"
        self.arn = application
        self.role = self._role("Job", f"What the Spark app of lake {stack.lake.name} may do", job_access)
        self.notebook_role: iam.Role | None = None
        if notebook_access is not None:
            what = f"What a notebook of lake {stack.lake.name} may do"
            self.notebook_role = self._role("Notebook", what, notebook_access)
        CfnOutput(stack, Output.EMR_SERVERLESS, value=self.application.attr_application_id)
        CfnOutput(stack, Output.RUNTIME_ROLE, value=self.role.role_arn)

    def _role(self, name: str, what: str, access: Access) -> iam.Role:
        """Create a role for runs of the application, which also write logs."""
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        role = iam.Role(
            self,
            f"{name}Role",
            description=what,
            assumed_by=iam.ServicePrincipal(
                "emr-serverless.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnEquals": {"aws:SourceArn": self.arn},
                },
            ),
        )
        policy = iam.ManagedPolicy(
            self,
            f"{name}Policy",
            description=what,
            statements=[
                *access.statements,
                iam.PolicyStatement(
                    actions=["s3:PutObject"], resources=[f"{bucket_arn(stack, 'logs')}/{_LOGS}/*"]
                ),
            ],
            roles=[role],
        )
        reason = "EMR Serverless names the files of a job run after it. The folder holds nothing else."
        acknowledge(policy, {**access.acknowledged, objects_finding(stack, "logs", f"{_LOGS}/*"): reason})
        return role


def _workers(kind: str, count: int) -> emr.CfnApplication.InitialCapacityConfigKeyValuePairProperty:
    """Return the workers that wait for a job while the application runs. It stops after idle minutes."""
    return emr.CfnApplication.InitialCapacityConfigKeyValuePairProperty(
        key=kind,
        value=emr.CfnApplication.InitialCapacityConfigProperty(
            worker_count=count,
            worker_configuration=emr.CfnApplication.WorkerConfigurationProperty(
                cpu=f"{_CPUS} vCPU", memory=f"{_MEMORY_GB} GB", disk=f"{_DISK_GB} GB"
            ),
        ),
    )
