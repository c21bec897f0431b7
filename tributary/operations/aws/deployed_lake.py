"""A deployed lake: the outputs of its stacks, and the service that runs its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tributary.api.tables import resolve_names
from tributary.aws.session import AwsSession
from tributary.aws.spark_submit import Addresses
from tributary.aws.stack_outputs import StackOutputs
from tributary.contract.aws_names import AwsNames, Output, StackKind
from tributary.contract.lake import Lake
from tributary.contract.table_name import TableName
from tributary.operations.aws.emr import EmrCluster
from tributary.operations.aws.emr_serverless import ServerlessApplication
from tributary.operations.aws.jobs import JobPlace
from tributary.operations.aws.lake_objects import read_table_names

OUTPUTS: Mapping[StackKind, tuple[str, ...]] = {
    "lake": (Output.BRONZE, Output.SILVER, Output.QUARANTINE, Output.GLUE_DATABASE),
    "streaming": (Output.BOOTSTRAP_SERVERS,),
    "processing": (Output.SPARK_ENTRY_POINT, Output.SPARK_APP, Output.SPARK_JARS, Output.LAKE_FILE),
}
"""The outputs that every job needs, by stack."""


def outputs_for_jobs(lake: Lake) -> Mapping[StackKind, tuple[str, ...]]:
    """Return the outputs that a job of this lake needs, by stack. Without Kafka there is no such stack."""
    if lake.connected_sources:
        return OUTPUTS
    return {kind: keys for kind, keys in OUTPUTS.items() if kind != "streaming"}


@dataclass(frozen=True)
class DeployedLake:
    """The lake of a lake file, on AWS."""

    lake: Lake
    session: AwsSession

    @cached_property
    def names(self) -> AwsNames:
        return AwsNames(self.lake.name)

    @cached_property
    def job_place(self) -> JobPlace:
        """The service that runs the lake's jobs. Raises NotDeployed."""
        processing, role = self.session.aws.processing, self.output("processing", Output.RUNTIME_ROLE)
        if processing.on == "emr":
            cluster = self.output("processing", Output.EMR_CLUSTER)
            return EmrCluster(self.session, self.names, processing, cluster, role)
        application = self.output("processing", Output.EMR_SERVERLESS)
        return ServerlessApplication(self.session, self.names, processing, application, role)

    @cached_property
    def addresses(self) -> Addresses:
        """The addresses of the lake's parts. Raises NotDeployed."""
        wanted = outputs_for_jobs(self.lake)
        outputs = {key: self.output(kind, key) for kind, keys in wanted.items() for key in keys}
        has_kafka = bool(self.lake.connected_sources)
        return Addresses.of_outputs(self.lake.name, self.session.aws, outputs, has_kafka=has_kafka)

    def resolve_tables(self, texts: Sequence[str]) -> tuple[TableName, ...]:
        """Return the tables that match names or patterns and have rows, or events in quarantine.

        Raises UnknownTable and NotDeployed.
        """
        uris = (self.addresses.silver, self.addresses.quarantine)
        known = read_table_names(self.session.s3, self.lake.names, *uris)
        return resolve_names(texts, known)

    def output(self, kind: StackKind, output: str) -> str:
        """Return an output of a stack. Raises NotDeployed."""
        return self._outputs.get(kind, output)

    @cached_property
    def _outputs(self) -> StackOutputs:
        return StackOutputs(self.session, self.names)
