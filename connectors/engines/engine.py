"""The interface of a database engine. Only the engine's own modules use its vocabulary.

An engine is one folder beside this module, one line in `connectors.engines.registry`, and its entries in the
lake file (`tributary.contract.engines`). No other module names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import pyarrow as pa
from pydantic import SecretStr

from connectors.deployment import ConnectorConfig, DatabaseAccess, Deployment, SecretReference
from connectors.engines.database_log import DatabaseLog, LogReader
from connectors.engines.definitions import TableDefinition
from connectors.engines.forms import Form
from connectors.engines.survey import DatabaseAddress, SourceEntries, Survey, SurveyedTable
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Request
from tributary.contract.remedies import Remedies, remedies_of
from tributary.contract.source import Source
from tributary.contract.table_name import TableName

if TYPE_CHECKING:
    from connectors.engines.checksums import TableParts

SourceT = TypeVar("SourceT", bound=Source)
SessionT = TypeVar("SessionT", bound=AbstractContextManager[Any])


class NotConnected(Exception):
    """A database refuses a connection.

    to     names the database
    found  is the driver's message, in one line
    """

    def __init__(self, to: str, found: str) -> None:
        super().__init__(f"{to}: {found}")
        self.to, self.found = to, found


class RowsUnreadable(Exception):
    """A database refuses to read one table's rows. The session and its snapshot still work."""


class DatabaseNotReady(TributaryError):
    """A server, a user or a table that Tributary cannot read without losing changes."""


NotReadyT = TypeVar("NotReadyT", bound=DatabaseNotReady)


def all_in_one(problems: Sequence[NotReadyT]) -> NotReadyT:
    """Return the first problem, with the others among its remedies, so that a person sees all at once."""
    first, *others = problems
    first.remedies = remedies_of((*first.remedies, *(f"Also: {other}" for other in others)))
    return first


class NotADatabaseUrl(TributaryError):
    """A text that does not name a database of an engine."""


class NotReadable(TributaryError):
    """A table that the connector cannot read alone."""


@dataclass(frozen=True)
class LeftOut:
    """A table that the lake cannot take, although the lake file's patterns match it.

    problems  each says what is wrong with the table, and what to do
    """

    table: TableName
    problems: tuple[DatabaseNotReady, ...]


@dataclass(frozen=True)
class Checked:
    """The findings of a check that do not stop the start.

    left_out  tables that the lake cannot take, ordered by name
    parts     tables whose rows reach the lake as another table's, and need no mention
    """

    left_out: tuple[LeftOut, ...] = ()
    parts: frozenset[TableName] = frozenset()
    warnings: tuple[str, ...] = ()

    @property
    def untaken(self) -> frozenset[TableName]:
        """The tables that match the patterns, and that the connector must not read."""
        return self.parts | {each.table for each in self.left_out}


@dataclass(frozen=True)
class UnknownTable:
    """The name of a table, as a connector's failure has it. None: the failure does not name the schema."""

    schema: str | None
    table: str


@dataclass(frozen=True)
class Encryption:
    """The encryption of a session. The certificates in the file, in PEM, must vouch for the server.

    None: nobody has to."""

    ca_file: str | None


@dataclass(frozen=True)
class Login:
    """A database server's address from this machine, and the user to log in as.

    encryption  None: the source's connection in the lake file decides
    """

    host: str
    port: int
    user: str
    password: SecretStr
    encryption: Encryption | None = None


ReadOffset = Callable[[], Mapping[str, Any] | None]
"""Returns the offset that Kafka Connect has stored for a source's connector, or None if there is none.

Kafka holds all events up to it."""


@dataclass(frozen=True)
class Awaited:
    """A condition that must be met before Kafka holds all that a database has committed.

    lacking  returns what is still missing, or None once nothing is missing
    """

    what: str
    lacking: Callable[[], str | None]


@dataclass(frozen=True)
class DatabaseColumn:
    """A column whose values reach the lake.

    type        as the database calls it
    form        in which its values are compared with the lake's; None: they cannot be compared exactly
    expression  computes that form from the value, in the engine's own language
    """

    name: str
    type: str
    form: Form | None
    expression: str = ""


@dataclass(frozen=True)
class DatabaseTable:
    """A table as the database's catalog describes it. `primary_key` is empty if the table has none.

    relation   stands for the table's rows, in the engine's own language
    condition  holds for the rows to read, in the engine's own language; None: for all
    """

    schema: str
    name: str
    columns: tuple[DatabaseColumn, ...]
    primary_key: tuple[str, ...]
    relation: str = ""
    condition: str | None = None


class Engine(ABC, Generic[SourceT, SessionT]):
    """One database engine. It works on its own class of `[source.NAME]` and on sessions of its own driver.

    title            what people call the engine
    port             that its servers usually listen on
    schemes          of URLs that name its databases
    plugin           the set of the plugin lock that its connector runs from
    connector_class  the connector's Java class
    keeps_history    whether its connector keeps the tables' definitions in a topic, the `history_topic`
    connection_keys  of `[source.NAME.connection]`: what to check if no session can be opened
    driver_errors    what a session's driver raises, for example if the server stops
    """

    title: ClassVar[str]
    port: ClassVar[int]
    schemes: ClassVar[tuple[str, ...]]
    plugin: ClassVar[str]
    connector_class: ClassVar[str]
    keeps_history: ClassVar[bool] = False
    connection_keys: ClassVar[str]
    driver_errors: ClassVar[tuple[type[Exception], ...]]

    # The connector.

    @abstractmethod
    def render(
        self, lake: Lake, source: SourceT, deployment: Deployment, untaken: Collection[TableName] = ()
    ) -> ConnectorConfig:
        """Return the connector that turns the source's changes into Kafka events, without any secret.

        The connector does not read the tables in `untaken`.
        """

    @abstractmethod
    def user(self, lake: Lake, source: SourceT) -> str:
        """Return who the connector logs in as."""

    @abstractmethod
    def access(
        self, lake: Lake, source: SourceT, host: str, port: int, password: SecretReference
    ) -> DatabaseAccess:
        """Return how the connector reaches the database at this address, encrypted as the lake file says."""

    @abstractmethod
    def remedies(self) -> Mapping[str, Remedies]:
        """Return what to do about a failed connector, by a part of the failure's text."""

    def unknown_table(self, failure: str) -> UnknownTable | None:  # noqa: ARG002
        """Return the table at whose changes the connector failed, because it does not know its columns.

        The connector skips the changes of a table that it does not read. None: it failed for another reason.
        `failure` is the failure's text.
        """
        return None

    def defines(self, config: Mapping[str, str]) -> Callable[[str], bool] | None:  # noqa: ARG002
        """Return whether a connector with this config keeps the definitions of a schema's tables.

        It cannot read other schemas' tables from its log, with another config either. None: it needs no
        definitions.
        """
        return None

    @abstractmethod
    def remains(self, config: Mapping[str, str]) -> str | None:
        """Return what a removed connector with this config leaves in the database, and how to remove it."""

    # The database.

    @abstractmethod
    def connect(self, source: SourceT, login: Login) -> SessionT:
        """Open a session in which each statement commits by itself. Raises NotConnected."""

    def check(self, session: SessionT, lake: Lake, source: SourceT) -> Checked:
        """Check the server and the source's tables. A table that cannot be taken is a finding, not an error.

        Raises DatabaseNotReady about what concerns the whole database, of the server and the tables at once.
        """
        try:
            warnings = self.check_server(session, lake, source)
        except DatabaseNotReady as of_server:
            raise all_in_one([of_server, *self._problems_of_tables(session, lake, source)]) from of_server
        found = self.check_tables(session, lake, source)
        return replace(found, warnings=(*found.warnings, *warnings))

    def _problems_of_tables(self, session: SessionT, lake: Lake, source: SourceT) -> list[DatabaseNotReady]:
        """Return what is wrong with the tables, as far as a server that is not as expected tells."""
        try:
            self.check_tables(session, lake, source)
        except DatabaseNotReady as of_tables:
            return [of_tables]
        except self.driver_errors:
            return []
        return []

    @abstractmethod
    def check_server(self, session: SessionT, lake: Lake, source: SourceT) -> tuple[str, ...]:
        """Check that the connector can read from the server, and return warnings. Raises DatabaseNotReady."""

    @abstractmethod
    def check_tables(self, session: SessionT, lake: Lake, source: SourceT) -> Checked:
        """Find the source's tables that cannot be taken. Raises DatabaseNotReady."""

    @abstractmethod
    def check_later_tables(self, session: SessionT, lake: Lake, source: SourceT) -> Checked:
        """Find the tables that cannot be taken, in the session of the connector's user, while it runs.

        A pattern of the lake file may have lost its tables meanwhile. There are no warnings.
        """

    @abstractmethod
    def prepare(
        self, admin: SessionT, lake: Lake, source: SourceT, password: str, untaken: Collection[TableName]
    ) -> tuple[str, ...]:
        """Prepare the database for the connector, and return warnings. It may run any number of times.

        The connector's user gets the password. Raises TributaryError.
        """

    @abstractmethod
    def check_prepared(
        self, session: SessionT, lake: Lake, source: SourceT, untaken: Collection[TableName]
    ) -> None:
        """Check that the session's user, the connector's, has all it needs. Raises DatabaseNotReady."""

    @abstractmethod
    def script(self, lake: Lake, source: SourceT, untaken: Collection[TableName]) -> str:
        """Return the script with which an administrator prepares the database."""

    @abstractmethod
    def script_command(self, script: Path) -> str:
        """Return the command that runs such a script."""

    @abstractmethod
    def forget(self, admin: SessionT, lake: Lake, source: SourceT) -> None:
        """Remove the database's state from which a connector would resume. It may be missing already."""

    # A first lake file.

    @abstractmethod
    def entries_of(self, address: DatabaseAddress) -> SourceEntries:
        """Return the engine's own entries of the source at this address. Raises NotADatabaseUrl."""

    @abstractmethod
    def survey(self, session: SessionT, address: DatabaseAddress) -> Survey:
        """Read which tables there are. The session's user may have few rights."""

    @abstractmethod
    def sample(
        self, session: SessionT, table: SurveyedTable, columns: Iterable[str]
    ) -> Sequence[Sequence[str | None]]:
        """Return some rows of a table, each with the text of these columns. Raises RowsUnreadable."""

    # Online snapshots. The session is the connector's user's.

    @abstractmethod
    def read_definitions(
        self, session: SessionT, lake: Lake, source: SourceT
    ) -> Mapping[TableName, TableDefinition]:
        """Read what the catalog says of each table that matches the source's patterns."""

    def unseen(
        self,
        session: SessionT,  # noqa: ARG002
        missing: Mapping[TableName, TableDefinition | None],  # noqa: ARG002
    ) -> frozenset[TableName]:
        """Return which of these tables may be there, although the catalog does not show them.

        missing  has the last definition of each; None: nobody knows it

        Some servers show a user only the tables that it may read. One that shows all tables to everybody has
        no unseen ones.
        """
        return frozenset()

    @abstractmethod
    def has_rows(self, session: SessionT, table: TableName) -> bool:
        """Return whether a table holds a row. The answer is yes, too, if the session's user may not know."""

    @abstractmethod
    def ask_for_snapshot(self, session: SessionT, lake: Lake, source: SourceT, request: Request) -> None:
        """Ask the connector to read a table again while it streams. It may be asked any number of times.

        Kafka has to hold all earlier changes of the table's definition. The connector tells the source's
        notification topic what it has read. Raises `NotReadable`.
        """

    @abstractmethod
    def forget_request(self, session: SessionT, lake: Lake, source: SourceT, request: Request) -> None:
        """Remove the database's remains of a request that is over."""

    # Reconciling. The session is the connector's user's.

    @abstractmethod
    def steps_to_kafka(
        self, session: SessionT, lake: Lake, source: SourceT, read_offset: ReadOffset
    ) -> Iterator[Awaited]:
        """Yield what to wait for, step by step, until Kafka holds all that was committed before the call."""

    @abstractmethod
    def read_log(self, session: SessionT, lake: Lake, source: SourceT, reader: LogReader) -> DatabaseLog:
        """Read how much log the database keeps for the connector."""

    @abstractmethod
    def snapshot(self, session: SessionT) -> AbstractContextManager[None]:
        """Return a context in which all reads see the database as it is now."""

    @abstractmethod
    def read_tables(self, session: SessionT) -> tuple[DatabaseTable, ...]:
        """Read the tables that can be replicated, ordered by schema and name."""

    @abstractmethod
    def read_rows(
        self, session: SessionT, table: DatabaseTable, columns: Iterable[str]
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows in a snapshot: these columns in their forms. Each of the columns must have a form.

        Only an engine that has `parts`, or whose sources have `filters_rows`, gets a table with a condition.

        Raises RowsUnreadable.
        """

    # Continuous verification. The session is the connector's user's.

    @property
    def parts(self) -> TableParts[SessionT] | None:
        """How tables are split and, perhaps, summed; None: only reconciling can compare them."""
        return None
