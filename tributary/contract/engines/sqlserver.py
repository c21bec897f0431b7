"""SQL Server in the lake file: its source, and how to connect to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from tributary.contract.entries import Port, Problem, matching
from tributary.contract.source import Connection, ExistingDatabase, Source
from tributary.contract.topic_form import TopicForm

if TYPE_CHECKING:
    from tributary.contract.aws import Aws

PORT = 1433

SslMode = Literal["disabled", "required", "verified"]
"""The encryption of connections, and the check of the server's certificate."""

# The name is a part of every topic's name, of a JDBC URL, and of a comma-separated option of Debezium's.
Database = Annotated[
    str,
    matching(r"[A-Za-z0-9_-]{1,128}", "a database's name of ASCII letters, digits, underscores and hyphens"),
]
# The name is a part of SQL, and of a Java option.
UserName = Annotated[
    str, matching(r"[^\s\"'\[\]$\\\x00]{1,128}", "a user's name, without blanks, quotes, brackets, $ or \\")
]


class SqlServerConnection(Connection):
    """The user's own server.

    user         None: the user that Tributary creates
    admin_user   turns change data capture on, and creates that user and the schema `tributary`
    ca_file      path of the certificates, in PEM, that `ssl_mode = "verified"` trusts
    trust_store  path of the same certificates as Java reads them (PKCS12 or JKS, its password "changeit")
    """

    port: Port = PORT
    user: UserName | None = None
    admin_user: UserName | None = None
    ssl_mode: SslMode = "required"
    ca_file: str | None = None
    trust_store: str | None = None

    def problems(self, entry: str) -> Iterator[Problem]:
        yield from super().problems(entry)
        given = {"ca_file": self.ca_file, "trust_store": self.trust_store}
        missing = [name for name, path in given.items() if path is None]
        if self.ssl_mode == "verified" and missing:
            expected = "ca_file and trust_store, which ssl_mode verified needs"
            found = f"no {' and no '.join(missing)}"
            yield Problem(entry, "no certificates for verifying the server", found, expected)


class ExistingSqlServer(ExistingDatabase):
    """A SQL Server that already exists on AWS. `cdk synth` writes the SQL for its administrator.

    ssl_mode  "verified" also verifies the certificate, by the roots of Amazon RDS
    """

    port: Port = PORT
    ssl_mode: Literal["required", "verified"] = "required"


class SqlServerSource(Source):
    """One database of a SQL Server."""

    existing: ClassVar[type[ExistingDatabase]] = ExistingSqlServer

    engine: Literal["sqlserver"]
    database: Database
    connection: SqlServerConnection | None = None

    @property
    def topic_form(self) -> TopicForm:
        return TopicForm((self.database,))

    def problems_on_aws(self, name: str, aws: Aws) -> Iterator[Problem]:
        if name not in aws.source:
            yield Problem(
                f"[source.{name}]",
                "Tributary creates no server of this engine on AWS",
                f'engine = "{self.engine}"',
                f"[aws.source.{name}] with the host of a server that exists",
            )
