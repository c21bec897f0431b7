"""A stand-in for an EMR cluster: its API, command-runner.jar, and its nodes' settings of Spark."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.aws.yarn.hadoop import SPARK_HOME, Yarn
from tests.conftest import SHORT_RUN
from tributary.artifacts.fetch import fetch
from tributary.artifacts.lock import read_lock
from tributary.aws.spark_submit import HUDI_JAR, ICEBERG_JAR, PYTHON
from tributary.local.spark_jars import LOCK as SPARK_LOCK

CLUSTER = "j-1"


def python_of_a_node() -> str:
    """Return a Python 3.11 that, like a node's, has none of the app's packages."""
    return PYTHON if Path(PYTHON).exists() else str(Path(sys.base_prefix) / "bin" / "python3.11")


def replaced(arguments: Sequence[str]) -> list[str]:
    """Return a step's arguments with replacements for what only AWS has:

    - Apache's Hudi and Iceberg in place of EMR's. The app on one machine runs on the same jars.
    - another Python 3.11, if this machine has none where EMR has it
    - a Kafka without a login in place of MSK. `--msk-iam` stays. So the Kafka clients still load the classes
      of the login from the step's jars, and the preflight still looks for credentials in all processes.

    All other arguments are the step's own.
    """
    if arguments[0] != "spark-submit":
        return list(arguments)
    replacements = {
        HUDI_JAR: str(pinned_jar("hudi-spark3.5-bundle_2.12")),
        ICEBERG_JAR: str(pinned_jar("iceberg-spark-runtime-3.5_2.12")),
        PYTHON: python_of_a_node(),
    }
    pattern = re.compile("|".join(map(re.escape, replacements)))
    here = [pattern.sub(lambda found: replacements[found[0]], argument) for argument in arguments]
    return [*here, "--kafka-option", "security.protocol=PLAINTEXT"]


def pinned_jar(artifact: str) -> Path:
    """Return a jar that the app on one machine runs on."""
    (jar,) = fetch(one for one in read_lock(SPARK_LOCK)["spark"] if one.artifact == artifact).values()
    return jar


def storage_settings(options: Mapping[str, str]) -> Mapping[str, str]:
    """Return a node's settings for S3: S3A with these options, in place of EMRFS."""
    of_s3a = {f"fs.s3a.{name}": value for name, value in options.items()}
    return {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", **of_s3a}


@dataclass
class Emr:
    """The part of EMR's API that `tributary submit` uses. It runs each step on YARN.

    spark_defaults  the classification `spark-defaults` of the deployed cluster
    """

    yarn: Yarn
    spark_defaults: Mapping[str, str]
    steps: dict[str, _Step] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # On EMR, EMRFS is in the same places.
        s3a = f"{pinned_jar('hadoop-aws')}{os.pathsep}{pinned_jar('aws-java-sdk-bundle')}"
        defaults = {
            "spark.master": "yarn",
            "spark.driver.extraClassPath": s3a,
            "spark.executor.extraClassPath": s3a,
            # Each node has Spark's jars, so no step uploads them.
            "spark.yarn.jars": f"local:{SPARK_HOME}/jars/*",
            # Optimizing the code would take longer than running it.
            "spark.driver.defaultJavaOptions": " ".join(SHORT_RUN),
            "spark.executor.defaultJavaOptions": " ".join(SHORT_RUN),
            "spark.yarn.stagingDir": (self.yarn.folder / "staging").as_uri(),
            **self.spark_defaults,
        }
        self._environment = {
            **self.yarn.environment(),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONF_DIR": str(self.yarn.settings),
            "SPARK_DIST_CLASSPATH": s3a,
            "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={self.yarn.scratch}",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        lines = (f"{name} {value}\n" for name, value in defaults.items())
        (self.yarn.settings / "spark-defaults.conf").write_text("".join(lines))

    def add_job_flow_steps(self, *, Steps: Sequence[Mapping[str, Any]], **_: Any) -> Mapping[str, Any]:  # noqa: N803
        """Run the step's command. With a runtime role, a shell interprets it."""
        (step,) = Steps
        assert step["HadoopJarStep"]["Jar"] == "command-runner.jar"
        number = f"s-{len(self.steps) + 1}"
        log = self.yarn.folder / f"step-{number}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["/bin/bash", "-c", " ".join(replaced(step["HadoopJarStep"]["Args"]))],
                env=self._environment,
                cwd=self.yarn.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.steps[number] = _Step(number, step["Name"], process, log)
        return {"StepIds": [number]}

    def describe_step(self, *, StepId: str, **_: Any) -> Mapping[str, Any]:  # noqa: N803
        return {"Step": self.steps[StepId].description()}

    def list_steps(self, *, StepStates: Sequence[str] = (), **_: Any) -> Mapping[str, Any]:  # noqa: N803
        found = (step.description() for step in reversed(self.steps.values()))
        return {"Steps": [step for step in found if not StepStates or step["Status"]["State"] in StepStates]}

    def get_paginator(self, _: str) -> _Pages:
        return _Pages(self)

    def describe_cluster(self, **_: Any) -> Mapping[str, Any]:
        return {"Cluster": {"Status": {"State": "RUNNING"}, "LogUri": "s3n://shop-logs/emr/"}}

    def latest(self) -> _Step:
        return list(self.steps.values())[-1]

    def end(self) -> None:
        """End the processes of all steps. Their applications end with YARN."""
        for step in self.steps.values():
            with suppress(ProcessLookupError):
                os.killpg(step.process.pid, signal.SIGKILL)
            step.process.wait()


@dataclass(frozen=True)
class _Step:
    id: str
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    def text(self) -> str:
        """Return the output of the step's command."""
        return self.log.read_text(errors="replace")

    def application(self) -> str | None:
        """Return the id of the application in YARN, once it is submitted."""
        found = re.search(r"Submitted application (application_\w+)", self.text())
        return None if found is None else found[1]

    def description(self) -> dict[str, Any]:
        status = self.process.poll()
        state = "RUNNING" if status is None else "FAILED" if status else "COMPLETED"
        application = self.application()
        return {
            "Id": self.id,
            "Name": self.name,
            "Status": {"State": state, "Timeline": {"CreationDateTime": self.created}},
            "AdditionalInfo": {"ResourceManagerApplicationIds": [application] if application else []},
        }


@dataclass(frozen=True)
class _Pages:
    emr: Emr

    def paginate(self, **asked: Any) -> Iterator[Mapping[str, Any]]:
        yield self.emr.list_steps(**asked)
