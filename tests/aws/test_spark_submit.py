"""Both kinds of EMR run the same app with the same arguments, from the outputs of the stacks."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import get_args

import pytest

from connectors.deployment import MskIamKafka
from spark_app.main import COMMANDS
from spark_app.run.arguments import parse_arguments
from spark_app.sources.kafka import MSK_IAM
from tributary.aws.spark_submit import (
    HUDI_JAR,
    ICEBERG_JAR,
    Addresses,
    Command,
    ErasureAddresses,
    Job,
    app_arguments,
    job_driver,
    submit_arguments,
)
from tributary.contract.aws import Aws, Connect, OtherSink, Processing
from tributary.contract.aws_names import Output
from tributary.contract.errors import TributaryError
from tributary.contract.table_name import TableName

AWS = Aws(region="eu-west-1")
OUTPUTS = {
    Output.BOOTSTRAP_SERVERS: "b-1.shop:9098,b-2.shop:9098",
    Output.SPARK_ENTRY_POINT: "s3://assets/main.py",
    Output.SPARK_APP: "s3://assets/package.zip",
    Output.SPARK_JARS: "s3://assets/a.jar,s3://assets/b.jar",
    Output.LAKE_FILE: "s3://assets/lake.zip",
    Output.BRONZE: "s3://shop-bronze",
    Output.SILVER: "s3://shop-silver",
    Output.QUARANTINE: "s3://shop-quarantine",
    Output.GLUE_DATABASE: "shop_silver",
}
ADDRESSES = Addresses.of_outputs("shop", AWS, OUTPUTS)
EMR, SERVERLESS = Processing(), Processing(on="emr-serverless")
ERASURE = ErasureAddresses("s3://shop-quarantine/k", "s3://shop-quarantine/r")
JOBS = [
    Job("ingest"),
    Job("ingest", follow=True),
    Job("ingest", source="bronze", tables=("web.public.a", "web.public.b")),
    Job("rebuild", tables=("web.public.a",)),
    Job("rebuild", tables=("web.public.a",), since_snapshot=True),
    Job("replay"),
    Job("new-epoch"),
    Job("compact"),
    Job("maintain"),
    Job("preflight"),
    Job("erase", tables=("web.public.a",), erasure=ERASURE),
    Job("delete-events", topics=("shop.web.public.a", "shop.web.public.b")),
]


def confs(arguments: tuple[str, ...]) -> dict[str, str]:
    pairs = [arguments[i + 1] for i, one in enumerate(arguments) if one == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def test_the_app_has_each_command_of_a_job() -> None:
    assert COMMANDS.keys() == {*get_args(Command)}


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_the_app_understands_the_arguments_of_every_job(job: Job) -> None:
    options = parse_arguments(app_arguments(job, ADDRESSES))
    assert options.command == job.command
    assert options.named == frozenset(map(TableName.parse, job.tables))
    assert options.kafka == "b-1.shop:9098,b-2.shop:9098"
    assert (options.silver, options.quarantine) == ("s3://shop-silver", "s3://shop-quarantine")
    assert options.has_msk_iam
    assert MSK_IAM.items() <= options.kafka_client.items()
    assert (options.follow, options.since_snapshot) == (job.follow, job.since_snapshot)


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_both_kinds_of_emr_start_the_same_app_with_the_same_arguments(job: Job) -> None:
    submit = submit_arguments(job, ADDRESSES, EMR)
    driver = job_driver(job, ADDRESSES, SERVERLESS)["sparkSubmit"]
    start = submit.index("s3://assets/main.py")
    assert driver["entryPoint"] == submit[start]
    assert driver["entryPointArguments"] == list(submit[start + 1 :])


def test_spark_s_own_options_differ_only_in_the_driver_s_environment() -> None:
    emr = confs(submit_arguments(Job("ingest"), ADDRESSES, EMR))
    serverless = confs(tuple(_parameters(Job("ingest"))))
    yarn, driver = "spark.yarn.", "spark.emr-serverless.driverEnv."
    environment = {name.removeprefix(driver): value for name, value in serverless.items() if driver in name}
    assert {
        name.removeprefix("spark.yarn.appMasterEnv."): value
        for name, value in emr.items()
        if "appMasterEnv" in name
    } == environment
    most = "spark.dynamicAllocation.maxExecutors"
    same = {name: value for name, value in emr.items() if not name.startswith(yarn) and name != most}
    assert same == {
        name: value for name, value in serverless.items() if not name.startswith(driver) and name != most
    }


def _parameters(job: Job) -> list[str]:
    return shlex.split(job_driver(job, ADDRESSES, SERVERLESS)["sparkSubmit"]["sparkSubmitParameters"])


def test_jars_come_from_emr_and_from_the_assets_and_none_from_maven() -> None:
    arguments = submit_arguments(Job("ingest"), ADDRESSES, EMR)
    assert confs(arguments)["spark.jars"].split(",") == [
        HUDI_JAR,
        ICEBERG_JAR,
        "s3://assets/a.jar",
        "s3://assets/b.jar",
    ]
    assert not {"--packages", "spark.jars.packages"} & set(arguments)


def test_archives_are_unpacked_where_python_and_the_app_look_for_them() -> None:
    arguments = submit_arguments(Job("ingest"), ADDRESSES, EMR)
    options = confs(arguments)
    assert options["spark.archives"] == "s3://assets/package.zip#app,s3://assets/lake.zip#lake"
    assert options["spark.yarn.appMasterEnv.PYTHONPATH"] == options["spark.executorEnv.PYTHONPATH"] == "./app"
    assert arguments[arguments.index("--lake") + 1] == "lake/lake.toml"


def test_the_shell_between_a_step_and_the_app_changes_no_argument() -> None:
    job = Job("rebuild", tables=("web.public.\"two words\"; $(rm) 'x'", "web.public.plain"))
    arguments = submit_arguments(job, ADDRESSES, EMR)
    assert shlex.split(" ".join(arguments)) == [
        *arguments[: arguments.index("s3://assets/main.py")],
        "s3://assets/main.py",
        *app_arguments(job, ADDRESSES),
    ]


def test_only_a_following_job_is_restarted_after_a_failure() -> None:
    once, follow = (
        confs(submit_arguments(Job("ingest", follow=on), ADDRESSES, EMR))["spark.yarn.maxAppAttempts"]
        for on in (False, True)
    )
    assert (once, follow) == ("1", "2")


def test_a_follow_job_is_recognized_by_its_name() -> None:
    assert Job("ingest", follow=True).name("shop") == "tributary-shop-follow"
    assert Job("ingest").name("shop") == "tributary-shop-ingest"


def test_only_an_ingest_follows() -> None:
    with pytest.raises(ValueError, match="rebuild cannot follow"):
        Job("rebuild", follow=True)
    with pytest.raises(ValueError, match="replay cannot start at a snapshot"):
        Job("replay", since_snapshot=True)


def test_executors_stay_within_the_maximum_capacity() -> None:
    def most(processing: Processing) -> str:
        return confs(submit_arguments(Job("ingest"), ADDRESSES, processing))[
            "spark.dynamicAllocation.maxExecutors"
        ]

    assert most(Processing(units_max=5)) == "10"
    # One of five workers is the driver's.
    assert most(Processing(on="emr-serverless", units_max=5)) == "4"


def test_with_another_sink_there_is_no_bronze_table_to_read_from() -> None:
    sink = OtherSink(plugin="sink.zip", sha256="0" * 64, config={"connector.class": "org.example.Sink"})
    other = Addresses.of_outputs("shop", AWS.model_copy(update={"connect": Connect(sink=sink)}), OUTPUTS)
    assert "--bronze-table" in app_arguments(Job("ingest"), ADDRESSES)
    assert "--bronze-table" not in app_arguments(Job("ingest"), other)
    assert other == replace(ADDRESSES, bronze_table=None)


@pytest.mark.parametrize("missing", OUTPUTS)
def test_an_output_that_is_missing_is_named(missing: str) -> None:
    with pytest.raises(TributaryError, match=missing):
        Addresses.of_outputs("shop", AWS, {key: value for key, value in OUTPUTS.items() if key != missing})


def test_the_app_logs_in_to_kafka_as_the_connectors_do() -> None:
    assert MskIamKafka("b:9098").client_config == {**MSK_IAM, "bootstrap.servers": "b:9098"}


def test_only_an_erasure_gets_keys_and_keeps_no_log_of_its_queries() -> None:
    (erase,) = (job for job in JOBS if job.command == "erase")
    arguments = app_arguments(erase, ADDRESSES)
    assert arguments[arguments.index("--keys") + 1] == "s3://shop-quarantine/k"
    assert arguments[arguments.index("--report") + 1] == "s3://shop-quarantine/r"
    assert "--metrics-log-group" not in arguments
    with_log = [
        job for job in JOBS if confs(submit_arguments(job, ADDRESSES, EMR)).get("spark.eventLog.enabled")
    ]
    assert with_log == [erase]
    with pytest.raises(ValueError, match="with erasure"):
        Job("erase")
    with pytest.raises(ValueError, match="with erasure"):
        Job("ingest", erasure=ERASURE)
