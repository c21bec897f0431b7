"""PostgreSQL in the lake file: its source, how to connect to it, and its database on AWS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from tributary.contract.aurora import Aurora
from tributary.contract.entries import Entry, Port, Problem, matching, toml_key
from tributary.contract.outbox import Outbox
from tributary.contract.source import Connection, ExistingDatabase, Source
from tributary.contract.topic_form import SCHEMA_AND_TABLE, TopicForm

if TYPE_CHECKING:
    from tributary.contract.aws import Aws

PORT = 5432

SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]

# libpq and the JDBC driver read the name from a URL, so it may not hold a character that ends or splits a
# URL.
Database = Annotated[
    str,
    matching(
        r"[^\s/?#%&:@\\\"'$]{1,63}", "a database's name, without blanks and without / ? # % & : @ \\ \" ' $"
    ),
]
RoleName = Annotated[
    str, matching(r"[^\s\"'$\\\x00]{1,63}", "a role's name, without blanks, quotes, $ or \\")
]


class PostgresConnection(Connection):
    """The user's own PostgreSQL.

    user         None: the role that Tributary creates
    admin_user   creates the role, the publication and the heartbeat table
    sslrootcert  path of the certificates that sslmode verify-ca and verify-full trust
    """

    port: Port = PORT
    user: RoleName | None = None
    admin_user: RoleName | None = None
    sslmode: SslMode = "prefer"
    sslrootcert: str | None = None

    def problems(self, entry: str) -> Iterator[Problem]:
        yield from super().problems(entry)
        if self.sslmode.startswith("verify-") and self.sslrootcert is None:
            expected = f"sslrootcert, which sslmode {self.sslmode} needs"
            yield Problem(entry, "no certificates for verifying the server", "no sslrootcert", expected)


class ExistingPostgres(ExistingDatabase):
    """A PostgreSQL that already exists on AWS. `cdk synth` writes the SQL for its administrator.

    sslmode  "verify-full" also verifies the certificate and its name, by the roots of Amazon RDS
    """

    port: Port = PORT
    sslmode: Literal["verify-full", "require", "prefer"] = "require"


class PostgresSource(Source):
    """A database of a PostgreSQL server."""

    filters_rows: ClassVar[bool] = True
    is_verifiable: ClassVar[bool] = True

    existing: ClassVar[type[ExistingDatabase]] = ExistingPostgres
    section_on_aws: ClassVar[str | None] = "database"
    alarms_on_aws: ClassVar[tuple[str, ...]] = ("slot_lag_gb",)

    engine: Literal["postgres"]
    database: Database
    connection: PostgresConnection | None = None
    outbox: Outbox | None = None

    @property
    def routed_events(self) -> Outbox | None:
        return self.outbox

    @property
    def topic_form(self) -> TopicForm:
        return SCHEMA_AND_TABLE if self.outbox is None else TopicForm(routed=self.outbox.lake_schema)

    def matches(self, schema: str, table: str) -> bool:
        """Tell whether the table becomes a lake table: one of the source's tables, but not its outbox."""
        is_outbox = self.outbox is not None and self.outbox.schema_and_table == (schema, table)
        return not is_outbox and super().matches(schema, table)

    def problems(self, entry: str) -> Iterator[Problem]:
        if self.outbox is not None:
            yield from self.outbox.problems(f"{entry[:-1]}.outbox]", self.patterns, self.format)

    def problems_on_aws(self, name: str, aws: Aws) -> Iterator[Problem]:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", self.database):
            key = toml_key(name)
            yield Problem(
                f"[source.{key}].database",
                "Aurora cannot create a database with this name",
                json.dumps(self.database),
                f"letters, digits and underscores, or [aws.source.{key}] with a database's host",
            )
        if aws.alarms.slot_lag_gb >= aws.database.slot_wal_gb:
            yield Problem(
                "[aws.alarms].slot_lag_gb",
                "the alarm would come only after PostgreSQL gives the replication slot up",
                str(aws.alarms.slot_lag_gb),
                f"less than [aws.database].slot_wal_gb, {aws.database.slot_wal_gb}",
            )


class AuroraPostgres(Aurora):
    """`[aws.database]`: the Aurora PostgreSQL cluster of each source without an `[aws.source.NAME]`.

    engine_version  Aurora's
    slot_wal_gb     how much log a replication slot may hold back before PostgreSQL gives the slot up
    demo_schema     creates the demo's tables and fills them
    """

    engine_version: Annotated[str, matching(r"1[5-9]\.[0-9]+", 'a version, such as "16.11"')] = "16.11"
    slot_wal_gb: Annotated[int, Field(ge=1, le=1000)] = 20
    demo_schema: bool = False


PRODUCTION: Mapping[str, Any] = {
    "instance": "db.r7g.large",
    "readers": 1,
    "backup_days": 14,
    "slot_wal_gb": 100,
}
"""The values of `[aws.database]` in the profile "production"."""


class PostgresAlarms(Entry):
    """PostgreSQL's entries in `[aws.alarms]`.

    slot_lag_gb  how much log a replication slot may hold back
    """

    slot_lag_gb: Annotated[int, Field(ge=1, le=1000)] = 5
