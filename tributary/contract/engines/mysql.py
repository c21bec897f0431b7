"""MySQL in the lake file: its source, and its database on AWS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator

from tributary.contract.aurora import Aurora
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.entries import Duration, Problem, expecting, matching

if TYPE_CHECKING:
    from tributary.contract.aws import Aws


class MySqlSource(BinlogSource):
    """The databases of a MySQL server."""

    section_on_aws: ClassVar[str | None] = "mysql"

    engine: Literal["mysql"]

    def problems_on_aws(self, name: str, aws: Aws) -> Iterator[Problem]:  # noqa: ARG002
        """Yield nothing: without an `[aws.source.NAME]`, the lake creates an Aurora MySQL cluster."""
        return iter(())


def _kept(duration: timedelta) -> timedelta:
    if duration % timedelta(hours=1) or not timedelta(hours=1) <= duration <= timedelta(days=90):
        raise expecting('whole hours, from "1h" to "90d"')
    return duration


class AuroraMySql(Aurora):
    """`[aws.mysql]`: the Aurora MySQL cluster of each MySQL source without an `[aws.source.NAME]`.

    engine_version  Aurora's, of the compatibility with MySQL 8.0
    binlog_kept     how long the server keeps its binary log, and so how long the connector may be away
    """

    engine_version: Annotated[
        str, matching(r"3\.[0-9]{2}\.[0-9]+", 'a version of Aurora MySQL 3, such as "3.10.3"')
    ] = "3.10.3"
    binlog_kept: Annotated[Duration, AfterValidator(_kept)] = timedelta(days=3)

    @property
    def binlog_hours(self) -> int:
        return self.binlog_kept // timedelta(hours=1)


PRODUCTION: Mapping[str, Any] = {
    "instance": "db.r7g.large",
    "readers": 1,
    "backup_days": 14,
    "binlog_kept": "7d",
}
"""The values of `[aws.mysql]` in the profile "production"."""
