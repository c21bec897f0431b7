"""`tributary submit` runs its steps on a real YARN, with the arguments that it sends to EMR.

The arguments reach a shell as those of a step with a runtime role do. Then `spark-submit --deploy-mode
cluster` starts the app in containers. `tests.aws.yarn.emr.replaced` is the only place that changes them. The
app's files are assets in S3, in the places of a deployment.

What EMR adds is not proven:

- Amazon's builds of Spark, Hudi and Hadoop, EMRFS, and the other jars and settings on its nodes
- runtime roles, their credentials, and the login to MSK
- node labels, the external shuffle service, several nodes, and the certificate of `[aws.processing].tls`
- bronze, which Iceberg would read through Glue
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import psutil
import pytest
from confluent_kafka import Producer

import tributary
from bench.servers import storage
from tests.aws.yarn.emr import CLUSTER, Emr, python_of_a_node, storage_settings
from tests.aws.yarn.hadoop import Yarn, running_yarn
from tests.aws_double import running_moto
from tests.cli.deployed import ACCOUNT, LAKE, NAMES, REGION, RELEASE, ROLE, make_stack
from tests.local.landed import wait_until
from tests.spark_app.debezium import SourceTable
from tributary.aws.session import AwsSession
from tributary.cli import main
from tributary.cli.commands import submit as submit_command
from tributary.contract.aws_names import BucketKind, Output
from tributary.contract.lake import parse_lake
from tributary.local import kafka
from tributary.local.process import read_log_tail
from tributary.local.s3 import S3Server, s3_client, s3a_options
from tributary.operations.aws.lake_objects import read_preflight

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="EMR's package is built for Linux only"),
]

TABLE = "shop.public.things"
BUCKETS: dict[str, BucketKind] = {
    Output.SILVER: "silver",
    Output.QUARANTINE: "quarantine",
    Output.BRONZE: "bronze",
}
PATIENCE_SECONDS = 300.0
_STOPPED_BY_CTRL_C = 130


@dataclass
class Deployed:
    """A deployed lake whose EMR is a YARN on this machine, and a table in its source."""

    lake_file: Path
    lake: tributary.OpenLake
    emr: Emr
    yarn: Yarn
    kafka: str
    topic: str
    things: SourceTable
    sent: int = 0

    def submit(self, *arguments: str) -> int:
        """Run `tributary submit`, and return its exit status."""
        status = main.run(["submit", *arguments, "--lake", str(self.lake_file)])
        if status == _STOPPED_BY_CTRL_C:
            raise KeyboardInterrupt  # it ends all tests, and not only the command
        return status

    def change(self, when: str) -> None:
        """Insert, update and delete rows in the source, in one transaction whose events reach Kafka."""
        things, first = self.things, 10 * self.sent
        things.begin()
        for key in range(first, first + 5):
            things.insert(key, when, None)
        things.update(first, f"changed {when}", "body", body_is_unchanged=False)
        things.delete(first + 1)
        things.commit()
        self._send()

    def _send(self) -> None:
        producer = Producer({"bootstrap.servers": self.kafka, "log_level": 0})
        for event in self.things.events[self.sent :]:
            producer.produce(self.topic, key=event.key, value=event.value, partition=0)
        assert producer.flush(30) == 0
        self.sent = len(self.things.events)

    def is_current(self) -> bool:
        """Return whether the lake has the source's rows."""
        if TABLE not in {str(found.name) for found in self.lake.tables()}:
            return False
        rows = self.lake.table(TABLE).arrow().select(["id", "name", "body"]).to_pylist()
        return sorted(rows, key=itemgetter("id")) == sorted(self.things.rows.values(), key=itemgetter("id"))

    def wait_for(self, what: str) -> None:
        """Wait until the lake has the source's rows."""
        wait_until(self.is_current, what, PATIENCE_SECONDS, poll_seconds=1)

    def application(self) -> str:
        """Return the id of the latest step's application, once it runs."""
        step = self.emr.latest()

        def is_running() -> bool:
            assert step.process.poll() is None, self.logs()
            return "(state: RUNNING)" in step.text()

        wait_until(is_running, "running application", PATIENCE_SECONDS)
        found = step.application()
        assert found is not None
        return found

    def driver(self, application: str) -> psutil.Process:
        """Return the Python process of the application's driver."""
        found: list[psutil.Process] = []

        def is_found() -> bool:
            found[:] = [one for one in self.yarn.processes(application) if _is_driver(one)]
            return bool(found)

        wait_until(is_found, "driver", PATIENCE_SECONDS)
        return found[0]

    def logs(self) -> str:
        """Return the ends of the logs of the latest step and its containers, for a failure's message."""
        step = self.emr.latest()
        of_containers = (self.yarn.logs / (step.application() or "")).glob("container_*/std*")
        return "\n".join(f"{log}:\n{read_log_tail(log)}" for log in (step.log, *sorted(of_containers)))

    def reports(self, application: str, event: str) -> list[dict[str, Any]]:
        """Return what all drivers of the application have reported about this kind of event."""
        logs = (self.yarn.logs / application).glob("container_*_000001/stdout")
        lines = [line for log in logs for line in log.read_text().splitlines() if line.startswith("{")]
        return [report for report in map(json.loads, lines) if report["event"] == event]


def _is_driver(process: psutil.Process) -> bool:
    try:
        return "python" in process.name() and any(part.endswith(".py") for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    # Importing the CDK starts a process.
    from tests.aws.yarn.deployment import processors_of_this_machine, spark_defaults, upload_assets

    folder = tmp_path_factory.mktemp("deployed")
    lake_file = folder / "lake.toml"
    lake_file.write_text(f"{LAKE}[aws.processing]\ntls = false\n{processors_of_this_machine()}")
    lake = parse_lake(lake_file.read_text())
    with ExitStack() as stack:
        servers = stack.enter_context(storage(lake, folder / "state"))
        stack.callback(kafka.KafkaBroker.stop, servers.state.run)
        servers.servers.kafka.start(threading.Event())
        bootstrap = servers.settings.kafka_bootstrap
        topic = lake.source_names(lake.sources[0]).topic("public", "things")
        kafka.create_topic(bootstrap, topic, partitions=1)
        s3 = servers.servers.s3
        environment = {
            "AWS_ACCESS_KEY_ID": s3.access_key,
            "AWS_SECRET_ACCESS_KEY": s3.secret_key,
            "AWS_ENDPOINT_URL": stack.enter_context(running_moto()),
            "AWS_ENDPOINT_URL_S3": s3.endpoint,
        }
        patch = stack.enter_context(_as_a_user(environment))
        client = s3_client(s3.endpoint, s3.access_key, s3.secret_key)
        _deploy(client, bootstrap, upload_assets(lake_file, folder, client))
        (folder / "yarn").mkdir()
        yarn = stack.enter_context(
            running_yarn(folder / "yarn", storage_settings(_s3a(s3, folder)), environment | _LOOPBACK)
        )
        emr = Emr(yarn, spark_defaults())
        stack.callback(emr.end)
        patch.setattr(AwsSession, "emr", emr)
        patch.setattr(AwsSession, "emr_once", emr)
        opened = tributary.open_lake(lake_file, aws=True)
        yield Deployed(lake_file, opened, emr, yarn, bootstrap, topic, SourceTable())


_LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1"}


@contextmanager
def _as_a_user(environment: dict[str, str]) -> Iterator[pytest.MonkeyPatch]:
    """Log in to AWS with this environment alone, and wait only shortly between looks at a job."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(submit_command, "_SECONDS_BETWEEN_LOOKS", 0.5)
        yield patch


def _deploy(client: S3Client, bootstrap: str, assets: Mapping[str, str]) -> None:
    """Create the stacks with their outputs, and the resources that the app uses."""
    buckets = {output: NAMES.bucket(kind, ACCOUNT, REGION) for output, kind in BUCKETS.items()}
    for bucket in buckets.values():
        client.create_bucket(Bucket=bucket)
    places = {output: f"s3://{bucket}" for output, bucket in buckets.items()}
    make_stack("lake", {**places, Output.GLUE_DATABASE: "shop_silver"})
    make_stack("streaming", {Output.BOOTSTRAP_SERVERS: bootstrap})
    cluster = {Output.EMR_CLUSTER: CLUSTER, Output.RUNTIME_ROLE: ROLE}
    make_stack("processing", {**assets, **cluster})
    boto3.client("glue", REGION).create_database(DatabaseInput={"Name": "shop_silver"})
    boto3.client("logs", REGION).create_log_group(logGroupName=NAMES.log_group("metrics"))


def _s3a(s3: S3Server, folder: Path) -> dict[str, str]:
    keys = {"access.key": s3.access_key, "secret.key": s3.secret_key}
    return {**s3a_options(s3.endpoint), **keys, "buffer.dir": str(folder / "s3a")}


def test_a_preflight_passes_in_containers_of_yarn(deployed: Deployed) -> None:
    status = deployed.submit("preflight", "--wait")

    assert status == 0, deployed.logs()
    quarantine = f"s3://{NAMES.bucket('quarantine', ACCOUNT, REGION)}"
    found = read_preflight(boto3.client("s3", REGION), quarantine, RELEASE)
    assert found is not None
    assert found.is_passed
    assert found.is_accelerated
    assert {check.name for check in found.checks} > {
        "credentials of the driver",
        "credentials of the executors",
        "login to Kafka",
        "catalog in Glue",
    }


def test_a_follow_job_runs_from_the_archive_and_resumes_where_it_was_killed(deployed: Deployed) -> None:
    deployed.change("before the job")
    assert deployed.submit("follow", "--without-preflight", "--wait") == 0
    first = deployed.application()
    assert deployed.yarn.state(first) == "RUNNING"
    deployed.wait_for("rows of the events before the job")
    _check_driver(deployed, first)
    deployed.change("while it follows")
    deployed.wait_for("rows of the events while it follows")

    assert deployed.submit("stop", "--wait") == 0
    assert deployed.yarn.state(first) == "KILLED"
    wait_until(lambda: not list(deployed.yarn.processes(first)), "end of its processes", PATIENCE_SECONDS)

    deployed.change("while no job runs")
    assert deployed.submit("follow", "--without-preflight", "--wait") == 0
    second = deployed.application()
    deployed.wait_for("rows of the events while no job ran")

    # YARN gives a follow job a second attempt.
    deployed.driver(second).kill()
    deployed.change("after a crash")
    deployed.wait_for("rows of the events after a crash")
    assert len(deployed.reports(second, "started")) == 2
    assert {report["steps"] for report in deployed.reports(second, "steps")} == {"accelerated"}
    assert deployed.submit("stop", "--wait") == 0

    # Events that were applied twice would count twice.
    sent = [event for event in deployed.things.events if event.value is not None]
    assert sum(commit.events for commit in deployed.lake.table(TABLE).history(50)) == len(sent)
    shown = boto3.client("glue", REGION).get_tables(DatabaseName="shop_silver")["TableList"]
    assert "shop__public__things" in {table["Name"] for table in shown}
    group = NAMES.log_group("metrics")
    assert boto3.client("logs", REGION).describe_log_streams(logGroupName=group)["logStreams"]


def _check_driver(deployed: Deployed, application: str) -> None:
    """Check that the driver runs in a container, with the step's environment and the archive's modules."""
    driver = deployed.driver(application)
    assert Path(driver.cwd()).is_relative_to(deployed.yarn.containers)
    environment = driver.environ()
    assert "./app" in environment["PYTHONPATH"].split(os.pathsep)
    assert environment["AWS_REGION"] == REGION
    assert Path(driver.exe()) == Path(python_of_a_node()).resolve()
    bare = subprocess.run([python_of_a_node(), "-c", "import boto3"], cwd="/", capture_output=True, text=True)
    assert "ModuleNotFoundError" in bare.stderr
    loaded = [Path(found.path) for found in driver.memory_maps()]
    of_package = [path for path in loaded if path.name.startswith("_pydantic_core")]
    assert of_package
    assert all(path.is_relative_to(deployed.yarn.containers) for path in of_package)
    assert not [path for path in loaded if path.is_relative_to(sys.prefix)]
