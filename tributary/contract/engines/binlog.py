"""What MySQL and MariaDB share in the lake file: their sources and how to connect to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from tributary.contract.encrypted import EncryptedConnection
from tributary.contract.entries import Port, Problem, matching
from tributary.contract.source import ExistingDatabase, Source

if TYPE_CHECKING:
    from tributary.contract.aws import Aws

PORT = 3306

# The user's name is a part of SQL literals and of Java options.
UserName = Annotated[
    str, matching(r"[^\s\"'`$\\@\x00]{1,32}", "a user's name, without blanks, quotes, $, @ or \\")
]
ServerId = Annotated[int, Field(ge=1, le=2**32 - 1)]


class BinlogConnection(EncryptedConnection):
    """The user's own server.

    user        None: the user that Tributary creates
    admin_user  creates that user, and the database `tributary`
    """

    port: Port = PORT
    user: UserName | None = None
    admin_user: UserName | None = None


class ExistingBinlogDatabase(ExistingDatabase):
    """A server that already exists on AWS. `cdk synth` writes the SQL for its administrator.

    ssl_mode  "verified" also verifies the certificate, by the roots of Amazon RDS
    """

    port: Port = PORT
    ssl_mode: Literal["required", "verified"] = "required"


class BinlogSource(Source):
    """The databases of a server that match the patterns, which are `database.table`.

    server_id  identifies the connector among the server's replicas; None: a number from the lake's and the
               source's names
    """

    is_verifiable: ClassVar[bool] = True

    existing: ClassVar[type[ExistingDatabase]] = ExistingBinlogDatabase

    connection: BinlogConnection | None = None
    server_id: ServerId | None = None

    def problems_beside(self, name: str, others: Mapping[str, Source]) -> Iterator[Problem]:
        if self.server_id is None:
            return
        same = [
            other
            for other, source in others.items()
            if isinstance(source, BinlogSource) and source.server_id == self.server_id
        ]
        for other in same:
            yield Problem(
                f"[source.{name}].server_id",
                f"the source {other} has the same number, and no two replicas of a server may share one",
                str(self.server_id),
                "another number, or no server_id: then it comes from the names",
            )

    def problems_on_aws(self, name: str, aws: Aws) -> Iterator[Problem]:
        if name not in aws.source:
            yield Problem(
                f"[source.{name}]",
                "Tributary creates no server of this engine on AWS",
                f'engine = "{self.engine}"',
                f"[aws.source.{name}] with the host of a server that exists",
            )
