"""Erase keys from a deployed lake, for the command `erase`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from spark_app.reports import Blocked, Erased
from tributary.api.open_lake import OpenLake, open_deployed
from tributary.aws.session import aws_session
from tributary.aws.spark_submit import ErasureAddresses, Job
from tributary.cli.aws.job_run import run_to_end
from tributary.cli.aws.remedy_words import remedy_words, worded_for_aws
from tributary.contract.errors import TributaryError
from tributary.contract.lake import read_lake
from tributary.contract.table_name import TableName
from tributary.operations.aws.bronze_changes import require_changeable_bronze
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.erasure_objects import ErasureObjects, KeysLeft, keys_on_aws
from tributary.operations.aws.jobs import JobFailed, JobPlace, JobRun, failure
from tributary.operations.aws.versions import (
    check_removal,
    folders_of,
    kept_until,
    remove_noncurrent_versions,
)
from tributary.operations.erasure import CannotErase, Erasure, Key, log_of, one_table, search
from tributary.operations.runs.run_progress import RunProgress, parse_report

_IF_INTERRUPTED = (
    "If it has not read the keys yet, it fails without a change. Run the command again once the job has "
    "ended."
)


def erase_on_aws(
    lake_file: Path, environment: str | None, table: str, keys: Sequence[Key], *, purges: bool
) -> Erasure:
    """Erase keys of a table with a job on AWS, and search all files for them. Return what was found.

    purges  remove the noncurrent versions of the removed files now, unless a file still holds a key

    What fails after the keys were erased is a part of the result. Before that, raises LakeFileError,
    AwsError, NotDeployed, UnknownTable, CannotErase, BronzeFixed, JobRefused, JobFailed, KeysLeft and
    VersionsLeft.
    """
    lake = read_lake(lake_file, environment)
    with worded_for_aws(), aws_session(lake, lake_file) as session:
        deployed = DeployedLake(lake, session)
        deployed.job_place.require_usable()
        name = _table(deployed, table)
        opened = open_deployed(lake, session)
        if purges:
            for folder in folders_of(opened, name):
                check_removal(session.s3, folder)
        erased: Erased | None = None
        failures: list[Exception] = []
        try:
            with keys_on_aws(session.s3, opened.quarantine, keys) as objects:
                erased, failed = _run(deployed, name, objects)
                failures += [failed] if failed is not None else []
        except KeysLeft as error:
            if erased is None:
                raise
            failures.append(error)
        return _searched(deployed, opened, name, erased, failures, purges=purges)


def _table(deployed: DeployedLake, text: str) -> TableName:
    lake, name = deployed.lake, one_table(text, deployed.resolve_tables([text]))
    source = lake.source(name.source)
    if source in lake.connected_sources:
        require_changeable_bronze(lake)
    elif source.item_stream is None:
        raise CannotErase(
            "Keys can only be erased from tables whose events Tributary brings to bronze",
            where=str(name),
        )
    return name


def _run(
    deployed: DeployedLake, table: TableName, objects: ErasureObjects
) -> tuple[Erased, Exception | None]:
    """Run the job to its end. Return its report, and how it failed after that.

    Raises JobRefused, and JobFailed if no keys were erased.
    """
    addresses = ErasureAddresses(objects.keys_uri, objects.report_uri)
    job = Job("erase", tables=(str(table),), erasure=addresses)
    run = run_to_end(deployed, job, _IF_INTERRUPTED)
    return _report(deployed.job_place, run, objects.read_report())


def _report(place: JobPlace, run: JobRun, text: str | None) -> tuple[Erased, Exception | None]:
    progress = RunProgress()
    is_unchanged = False
    for line in (text or "").splitlines():
        if (report := parse_report(line)) is not None:
            progress = progress.after(report)
            is_unchanged = is_unchanged or (isinstance(report, Blocked) and report.is_unchanged)
    failed = failure(place.name, run) if run.state in ("cancelled", "failed") else None
    for one in progress.upkeep:
        if isinstance(one, Erased):
            return one, failed
    for table in progress.tables.values():
        if table.error is not None:
            raise JobFailed(
                "nothing was changed" if is_unchanged else "the erasure did not end; it can be repeated",
                where=f"{place.name}, {run.kind} {run.id}",
                found=table.error,
                remedy=table.remedies,
            )
    if failed is not None:
        raise failed
    raise JobFailed(
        "the job has ended, but its report says of no table that keys were erased",
        where=f"{place.name}, {run.kind} {run.id}",
        found="no report" if text is None else f"tables {', '.join(progress.tables) or 'none'}",
        remedy="Run the command again.",
    )


def _searched(
    deployed: DeployedLake,
    opened: OpenLake,
    table: TableName,
    erased: Erased,
    failures: Sequence[Exception],
    *,
    purges: bool,
) -> Erasure:
    now = datetime.now(UTC)
    log = log_of(deployed.lake.source(table.source), erased, deployed.session.aws.kafka.retention, now)
    found = Erasure(erased, None, log, kept_until(now))
    try:
        remains = search(opened, table, erased.keys)
        found = replace(found, remains=remains)
        if purges and remains.is_empty:
            s3 = deployed.session.s3
            purged = sum(remove_noncurrent_versions(s3, folder) for folder in folders_of(opened, table))
            found = replace(found, versions_until=None, purged=purged)
    except Exception as error:  # noqa: BLE001  Nothing may hide the report of an erasure.
        failures = [*failures, error]
    return replace(found, failures=tuple(map(_text, failures)))


def _text(error: Exception) -> str:
    if isinstance(error, TributaryError):
        return error.text(remedy_words)
    return f"{type(error).__name__}: {error}"
