"""The request that would start a job, for a lake whose stacks cannot be asked: outputs are placeholders."""

from __future__ import annotations

from tributary.aws.spark_submit import Addresses, Job
from tributary.contract.aws import Aws
from tributary.contract.aws_names import AwsNames, Output, StackKind
from tributary.contract.lake import Lake
from tributary.operations.aws.deployed_lake import outputs_for_jobs
from tributary.operations.aws.emr import start_step_call, stop_step_call
from tributary.operations.aws.emr_serverless import start_run_call, stop_run_call
from tributary.operations.aws.jobs import Call


def planned_start(lake: Lake, aws: Aws, job: Job) -> Call:
    """Return the request with `<STACK OUTPUT>` in place of each output. It needs no AWS account."""
    names, processing = AwsNames(lake.name), aws.processing
    wanted = outputs_for_jobs(lake)
    outputs = {key: _placeholder(names, kind, key) for kind, keys in wanted.items() for key in keys}
    addresses = Addresses.of_outputs(lake.name, aws, outputs, has_kafka=bool(lake.connected_sources))
    role = _placeholder(names, "processing", Output.RUNTIME_ROLE)
    if processing.on == "emr":
        cluster = _placeholder(names, "processing", Output.EMR_CLUSTER)
        return start_step_call(cluster, role, job, addresses, processing)
    application = _placeholder(names, "processing", Output.EMR_SERVERLESS)
    return start_run_call(application, role, job, addresses, processing)


def planned_stop(lake: Lake, aws: Aws) -> Call:
    """Return the request that ends a running job, with placeholders also for what the job has started."""
    names = AwsNames(lake.name)
    if aws.processing.on == "emr":
        cluster = _placeholder(names, "processing", Output.EMR_CLUSTER)
        role = _placeholder(names, "processing", Output.RUNTIME_ROLE)
        return stop_step_call(cluster, role, names, ["<YARN application of the running job>"])
    application = _placeholder(names, "processing", Output.EMR_SERVERLESS)
    return stop_run_call(application, "<id of the running job>")


def _placeholder(names: AwsNames, kind: StackKind, output: str) -> str:
    return f"<{names.stack(kind)} {output}>"
