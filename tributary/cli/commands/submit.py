"""The command `submit`."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tributary.cli.commands.options import DEFAULT_LAKE_FILE, AsJson, Environment, LakeFile
from tributary.cli.rendering import messages, output, print_json
from tributary.contract.errors import TributaryError

if TYPE_CHECKING:
    from tributary.aws.spark_submit import Job
    from tributary.contract.lake import Lake
    from tributary.operations.aws.deployed_lake import DeployedLake
    from tributary.operations.aws.jobs import Call, JobPlace, JobRun

Start = Literal[
    "preflight", "ingest", "follow", "rebuild", "compact", "maintain", "replay", "new-epoch", "derive"
]
Operation = Literal[Start, "stop"]

_NAMES_TABLES = ("rebuild", "new-epoch")
_TAKES_NO_TABLE = ("preflight", "ingest", "follow", "maintain", "stop")
_SECONDS_BETWEEN_LOOKS = 10.0


@dataclass(frozen=True)
class _Asked:
    """What somebody asks for. `source` is where to read the events; None: the operation's default."""

    operation: Operation
    tables: tuple[str, ...]
    source: str | None
    since_snapshot: bool
    follow: bool


@dataclass(frozen=True)
class _Way:
    """How the command goes about it: whether it waits, only shows the request, and answers in JSON."""

    wait: bool
    dry_run: bool
    as_json: bool


def submit(
    operation: Annotated[
        Operation,
        typer.Argument(
            help="preflight: try all that a job needs; ingest: until all is caught up; follow: until it is "
            "stopped; rebuild: recreate tables from bronze; compact: compact merge-on-read tables; maintain: "
            "keep bronze small; replay: apply quarantined events; new-epoch: continue at the beginning of "
            "recreated topics; derive: bring derived tables up to date; stop: end the running job."
        ),
    ],
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...",
            help="Such as sales or 'public.*'. Default for compact, replay and derive: all tables.",
        ),
    ] = None,
    events_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="kafka|bronze|files:URI",
            help="Where to read the events. Default: kafka, or bronze for rebuild and replay.",
        ),
    ] = None,
    since_snapshot: Annotated[
        bool, typer.Option("--since-snapshot", help="For rebuild: see `tributary rebuild --help`.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="For derive: run until it is stopped.")] = False,
    without_preflight: Annotated[
        bool,
        typer.Option(
            "--without-preflight", help="For follow: start although no preflight has passed on this release."
        ),
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the job has ended, or until a follow job runs.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the request to AWS as JSON, but do not send it. Without an AWS account, outputs of "
            "the stacks are placeholders.",
        ),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    environment: Environment = None,
    as_json: AsJson = False,
) -> None:
    """Start a job on the deployed lake: a step of its EMR cluster, or a job run of EMR Serverless.

    The command reads all addresses from the outputs of the lake's stacks. A table has one writer at a time,
    so a job is refused while another job of the lake is active. Only a job that derives tables may run beside
    one that does not. The operation `stop` ends the active jobs at once. Unfinished work is not lost: the
    next job starts from each table's last commit.

    The operation `preflight` tries on the deployed release of EMR what the other jobs need: the Java
    classes, a table of each storage in a scratch folder, the login to Kafka, Glue, and the credentials. With
    --wait, it prints a table. A follow job is refused until a preflight has passed on the release.

    The exit status is 0 if AWS accepted the job. With --wait, it is 0 only if the job also succeeded.
    """
    from tributary.aws.session import NoCredentials, aws_session
    from tributary.aws.stack_outputs import NotDeployed
    from tributary.cli.aws.remedy_words import worded_for_aws
    from tributary.contract.lake import read_lake
    from tributary.operations.aws.deployed_lake import DeployedLake

    asked = _Asked(operation, tuple(tables or ()), events_from, since_snapshot, follow)
    way = _Way(wait, dry_run, as_json)
    _check_usage(asked)
    the_lake = read_lake(lake, environment)
    with worded_for_aws():
        _check_lake(the_lake, asked)
    try:
        with worded_for_aws(), aws_session(the_lake, lake) as session:
            deployed = DeployedLake(the_lake, session)
            place = deployed.job_place
            place.require_usable()
            if operation == "stop":
                _stop(place, way)
            else:
                if operation != "derive" and asked.tables:
                    asked = replace(asked, tables=tuple(map(str, deployed.resolve_tables(asked.tables))))
                job = _job(the_lake, operation, asked)
                needs_preflight = operation == "follow" and not without_preflight
                _submit(deployed, job, way, needs_preflight=needs_preflight)
    except (NoCredentials, NotDeployed) as error:
        if not dry_run:
            raise
        _print_plan(the_lake, asked, error)


def _print_plan(lake: Lake, asked: _Asked, why: TributaryError) -> None:
    """Print the request as far as the lake file determines it. `why` says why the stacks cannot be asked."""
    from tributary.cli.aws.planned_lake import planned_start, planned_stop

    assert lake.aws is not None
    if asked.operation == "stop":
        call = planned_stop(lake, lake.aws)
    else:
        call = planned_start(lake, lake.aws, _job(lake, asked.operation, asked))
    _print_call(call)
    about = (
        "Each running job gets such a request"
        if asked.operation == "stop"
        else "Names of tables are as you wrote them"
    )
    messages.print(
        f"Each <…> stands for an output of a stack, because the stacks were not asked: {why.args[0]}. "
        f"{about}.",
        style="yellow",
        markup=False,
        soft_wrap=True,
    )


def _check_usage(asked: _Asked) -> None:
    operation, tables, events_from = asked.operation, asked.tables, asked.source
    if asked.follow and operation != "derive":
        raise typer.BadParameter(f"{operation} has no such option", param_hint="--follow")
    if operation == "derive" and events_from is not None:
        raise typer.BadParameter("derive reads what the queries name", param_hint="--from")
    if asked.since_snapshot and operation != "rebuild":
        raise typer.BadParameter(f"{operation} has no such option", param_hint="--since-snapshot")
    if operation in _NAMES_TABLES and not tables:
        raise typer.BadParameter(f"{operation} needs one table or more", param_hint="TABLE")
    if operation in _TAKES_NO_TABLE and tables:
        raise typer.BadParameter(f"{operation} is for all tables of the lake", param_hint="TABLE")
    if operation == "maintain" and events_from is not None:
        raise typer.BadParameter("maintain works on bronze alone", param_hint="--from")
    if events_from not in (None, "kafka", "bronze") and not str(events_from).startswith("files:s3://"):
        raise typer.BadParameter("expected kafka, bronze or files:s3://…", param_hint="--from")


def _check_lake(lake: Lake, asked: _Asked) -> None:
    """Raise an error if the lake file alone shows that the operation cannot run."""
    from tributary.cli.commands.derive import known_names
    from tributary.operations.aws.bronze_changes import require_changeable_bronze

    if asked.operation == "derive":
        known_names(lake, asked.tables)
    if asked.operation == "maintain":
        require_changeable_bronze(lake)
    source = asked.source or ("bronze" if asked.operation in ("rebuild", "replay") else "kafka")
    if lake.aws is not None and lake.aws.connect.sink is not None and source == "bronze":
        raise TributaryError(
            f"{asked.operation} cannot read bronze as a table, because another sink writes it",
            where=f"lake {lake.name}, entry [aws.connect.sink]",
            expected="--from kafka, or --from files: with the place in the bronze bucket where that sink "
            "writes, such as files:s3://…/topics",
        )


def _job(lake: Lake, operation: Start, asked: _Asked) -> Job:
    from tributary.aws.spark_submit import Job
    from tributary.cli.commands.derive import known_names

    if operation == "derive":
        return Job("derive", follow=asked.follow, tables=known_names(lake, asked.tables))
    if operation == "follow":
        return Job("ingest", follow=True, source=asked.source)
    return Job(operation, tables=asked.tables, source=asked.source, since_snapshot=asked.since_snapshot)


def _submit(deployed: DeployedLake, job: Job, way: _Way, *, needs_preflight: bool) -> None:
    from tributary.cli.aws.job_view import run_facts
    from tributary.cli.aws.preflight import last_preflight, print_preflight, refusal_without
    from tributary.cli.aws.remedy_words import remedy_words
    from tributary.operations.aws.jobs import failure, refusal

    place = deployed.job_place
    call = place.start_call(job, deployed.addresses)
    refused: TributaryError | None = refusal(place, job.name(deployed.lake.name))
    preflight = last_preflight(deployed) if needs_preflight else None
    if refused is None and needs_preflight:
        refused = refusal_without(preflight, deployed.addresses.release)
    if way.dry_run:
        _print_call(call)
        if refused is not None:
            messages.print(
                f"It would be refused: {refused.text(remedy_words)}",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )
        return
    if refused is not None:
        raise refused
    if preflight is not None and not preflight.is_accelerated:
        messages.print("The job will run in plain PySpark: see tributary status --aws.", highlight=False)
    run = _start(place, call)
    if not way.as_json:
        _print_started(place, run)
    if way.wait:
        run = _wait(place, run, until_it_runs=job.follow, fails=job.command != "preflight")
    checked = last_preflight(deployed) if way.wait and job.command == "preflight" else None
    if way.as_json:
        print_json({**run_facts(run), **({} if checked is None else {"preflight": asdict(checked)})})
    elif checked is not None:
        print_preflight(checked)
    if run.state in ("cancelled", "failed"):
        raise failure(place.name, run)


def _start(place: JobPlace, call: Call) -> JobRun:
    return place.read(place.start(call))


def _print_started(place: JobPlace, run: JobRun) -> None:
    output.print(f"{run.name} is {run.kind} {run.id} of {place.name}.", highlight=False, soft_wrap=True)
    for log in run.logs:
        output.print(f"Its log will be in {log}", highlight=False, soft_wrap=True)


def _wait(place: JobPlace, run: JobRun, *, until_it_runs: bool, fails: bool) -> JobRun:
    """Wait for the job. With `fails`, raise JobFailed if it has not ended well."""
    from tributary.cli.aws.job_view import job_view
    from tributary.operations.aws.jobs import failure, wait_for

    def is_enough(seen: JobRun) -> bool:
        return until_it_runs and seen.state == "running"

    try:
        with job_view(messages) as show:
            run = wait_for(place, run.id, is_enough, show, _pause)
    except KeyboardInterrupt:
        messages.print(f"{run.name} keeps running. To stop it, run tributary submit stop.", highlight=False)
        raise
    if fails and run.state in ("cancelled", "failed"):
        raise failure(place.name, run)
    return run


def _stop(place: JobPlace, way: _Way) -> None:
    from tributary.cli.aws.job_view import job_view, run_facts
    from tributary.operations.aws.jobs import read_stoppable, wait_for

    runs = read_stoppable(place)
    for run in runs:
        call = place.stop_call(run)
        if way.dry_run:
            _print_call(call)
            continue
        place.stop(call)
        if not way.as_json:
            output.print(f"{run.name} ({run.kind} {run.id}) is being stopped.", highlight=False)
    if way.dry_run:
        return
    if way.wait:
        with job_view(messages) as show:
            runs = tuple(wait_for(place, run.id, lambda _: False, show, _pause) for run in runs)
    if way.as_json:
        print_json([run_facts(run) for run in runs])
    elif not runs:
        output.print(f"No job runs on {place.name}.", highlight=False)


def _print_call(call: Call) -> None:
    print_json({"service": call.service, "operation": call.operation, "parameters": call.parameters})


def _pause() -> None:
    time.sleep(_SECONDS_BETWEEN_LOOKS)
