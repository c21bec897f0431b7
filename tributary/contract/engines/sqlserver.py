"""SQL Server in the lake file: its source, how to connect to it, and its database on AWS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tributary.contract.encrypted import EncryptedConnection
from tributary.contract.entries import Duration, Entry, Port, Problem, expecting, matching
from tributary.contract.source import ExistingDatabase, Source
from tributary.contract.topic_form import TopicForm

if TYPE_CHECKING:
    from tributary.contract.aws import Aws

PORT = 1433

# The name is a part of every topic's name, of a JDBC URL, and of a comma-separated option of Debezium's.
Database = Annotated[
    str,
    matching(r"[A-Za-z0-9_-]{1,128}", "a database's name of ASCII letters, digits, underscores and hyphens"),
]
# The name is a part of SQL, and of a Java option.
UserName = Annotated[
    str, matching(r"[^\s\"'\[\]$\\\x00]{1,128}", "a user's name, without blanks, quotes, brackets, $ or \\")
]


class SqlServerConnection(EncryptedConnection):
    """The user's own server.

    user        None: the user that Tributary creates
    admin_user  turns change data capture on, and creates that user and the schema `tributary`
    """

    port: Port = PORT
    user: UserName | None = None
    admin_user: UserName | None = None


class ExistingSqlServer(ExistingDatabase):
    """A SQL Server that already exists on AWS. `cdk synth` writes the SQL for its administrator.

    ssl_mode  "verified" also verifies the certificate, by the roots of Amazon RDS
    """

    port: Port = PORT
    ssl_mode: Literal["required", "verified"] = "required"


class SqlServerSource(Source):
    """One database of a SQL Server."""

    existing: ClassVar[type[ExistingDatabase]] = ExistingSqlServer
    section_on_aws: ClassVar[str | None] = "sqlserver"

    engine: Literal["sqlserver"]
    database: Database
    connection: SqlServerConnection | None = None

    @property
    def topic_form(self) -> TopicForm:
        return TopicForm((self.database,))

    def problems_on_aws(self, name: str, aws: Aws) -> Iterator[Problem]:
        if name not in aws.source and self.database.lower() in RESERVED_DATABASES:
            yield Problem(
                f"[source.{name}].database",
                "a database of SQL Server's or of Amazon RDS's own",
                self.database,
                "a name for the database that the lake creates",
            )


RESERVED_DATABASES = frozenset({"master", "model", "msdb", "rdsadmin", "tempdb"})
"""Databases that an instance of Amazon RDS has for itself, in small letters."""

LEAST_GB, MOST_GB = 20, 16384
"""Limits of gp3 storage in the Standard and Enterprise editions (Amazon RDS user guide, November 2026)."""


def _kept(duration: timedelta) -> timedelta:
    if not timedelta(hours=1) <= duration <= timedelta(days=90):
        raise expecting('"1h" to "90d"')
    return duration


class RdsSqlServer(Entry):
    """`[aws.sqlserver]`: the RDS instance of each SQL Server source without an `[aws.source.NAME]`.

    engine_version  Amazon RDS's, of SQL Server 2017, 2019 or 2022
    edition         the other editions have no change data capture
    storage_gb      at first; storage_max_gb is how far it may grow
    standby         a second instance in another zone, which takes over if the first one fails
    changes_kept    how long the server keeps captured changes, and so how long the connector may be away
    """

    engine_version: Annotated[
        str,
        matching(
            r"1[456]\.00\.[0-9]{4}\.[0-9]{1,3}\.v[0-9]",
            'a version of SQL Server 2017 to 2022 on Amazon RDS, such as "16.00.4236.2.v1"',
        ),
    ] = "16.00.4236.2.v1"
    edition: Literal["standard", "enterprise"] = "standard"
    instance: Annotated[
        str, matching(r"db\.[a-z0-9]+\.[0-9a-z]+", 'an RDS instance class, such as "db.m5.xlarge"')
    ] = "db.m5.xlarge"
    storage_gb: Annotated[int, Field(ge=LEAST_GB, le=MOST_GB)] = 20
    storage_max_gb: Annotated[int, Field(ge=LEAST_GB, le=MOST_GB)] = 200
    standby: bool = False
    backup_days: Annotated[int, Field(ge=1, le=35)] = 7
    changes_kept: Annotated[Duration, AfterValidator(_kept)] = timedelta(days=3)

    @model_validator(mode="after")
    def _room_to_grow(self) -> Self:
        # Amazon RDS refuses a limit that is nearer.
        if self.storage_max_gb != self.storage_gb and self.storage_max_gb * 10 < self.storage_gb * 11:
            raise expecting("storage_max_gb that is equal to storage_gb, or at least a tenth above it")
        return self

    @property
    def kept_minutes(self) -> int:
        return self.changes_kept // timedelta(minutes=1)


PRODUCTION: Mapping[str, Any] = {
    "instance": "db.m5.2xlarge",
    "storage_gb": 100,
    "storage_max_gb": 1000,
    "standby": True,
    "backup_days": 14,
    "changes_kept": "7d",
}
"""The values of `[aws.sqlserver]` in the profile "production"."""
