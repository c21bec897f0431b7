"""The request that would start a job, for a lake whose stacks cannot be asked: outputs are placeholders."""

from __future__ import annotations

from tributary.aws.spark_submit import Addresses, Job
from tributary.contract.aws import Aws
from tributary.contract.aws_names import AwsNames, Output, StackKind
from tributary.contract.lake import Lake
from tributary.operations.aws.deployed_lake import outputs_for_jobs
from tributary.operations.aws.emr import start_step_call
from tributary.operations.aws.emr_serverless import start_run_call
from tributary.operations.aws.jobs import Call


def planned_start(lake: Lake, aws: Aws, job: Job) -> Call:
    """Return the request with `<STACK OUTPUT>` in place of each output. It needs no AWS account."""
    names, processing = AwsNames(lake.name), aws.processing

    def placeholder(kind: StackKind, output: str) -> str:
        return f"<{names.stack(kind)} {output}>"

    wanted = outputs_for_jobs(lake)
    outputs = {key: placeholder(kind, key) for kind, keys in wanted.items() for key in keys}
    addresses = Addresses.of_outputs(lake.name, aws, outputs, has_kafka=bool(lake.connected_sources))
    role = placeholder("processing", Output.RUNTIME_ROLE)
    if processing.on == "emr":
        cluster = placeholder("processing", Output.EMR_CLUSTER)
        return start_step_call(cluster, role, job, addresses, processing)
    application = placeholder("processing", Output.EMR_SERVERLESS)
    return start_run_call(application, role, job, addresses, processing)
