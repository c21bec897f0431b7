"""What removing a table from a deployed lake needs: that no job runs, and the table's names in Glue."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from tributary.contract.aws_names import Output
from tributary.contract.remedies import StopRun
from tributary.contract.table_name import TableName
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.jobs import moment, read_stoppable
from tributary.operations.aws.linked_lake import LinkedLake
from tributary.operations.orphans import IngestRuns, LakeWithOrphans

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

_VIEWS = ("", "_ro", "_rt")
"""The ends of a table's names in Glue. Only a merge-on-read table has the last two."""


def orphans_on_aws(linked: LinkedLake) -> LakeWithOrphans:
    """Return the deployed lake. A deployment leaves out no table: it fails instead."""
    deployed = linked.deployed
    return LakeWithOrphans(
        linked,
        check_no_run=partial(_check_no_job, deployed),
        uncatalog=partial(_uncatalog, deployed, f"s3://{linked.open_lake.silver}"),
    )


def _check_no_job(deployed: DeployedLake) -> None:
    for run in read_stoppable(deployed.job_place):
        raise IngestRuns(
            "A table cannot be removed while a job of the lake is active",
            where=deployed.job_place.name,
            found=f"{run.name}, {run.kind} {run.id}, {run.aws_state} since {moment(run.created)}",
            remedy=StopRun(),
        )


def _uncatalog(deployed: DeployedLake, silver: str, table: TableName) -> None:
    """Delete the table's names in the Glue catalog. Raises NotDeployed and boto3's errors."""
    names, glue = deployed.lake.names, deployed.session.glue
    database = deployed.output("lake", Output.GLUE_DATABASE)
    location = f"{silver}/{names.table_path(table)}"
    for name in _names_at(glue, database, names.glue_table(table), location):
        glue.delete_table(DatabaseName=database, Name=name)


def _names_at(glue: GlueClient, database: str, name: str, location: str) -> Iterator[str]:
    """Yield the names that exist and whose files are at the location."""
    for view in _VIEWS:
        try:
            found = glue.get_table(DatabaseName=database, Name=f"{name}{view}")["Table"]
        except glue.exceptions.EntityNotFoundException:
            continue
        if found.get("StorageDescriptor", {}).get("Location", "").rstrip("/") == location:
            yield found["Name"]
