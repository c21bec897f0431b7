"""The entries that every source has in the lake file. Each engine adds entries of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from tributary.contract.entries import (
    Entry,
    EnvironmentVariable,
    Host,
    KeyArn,
    Port,
    Problem,
    SecretArn,
    as_tuple,
    expecting,
    matching,
)
from tributary.contract.item_stream import ItemRules, ItemStream
from tributary.contract.outbox import Outbox
from tributary.contract.patterns import NotATablePattern, TablePattern, TablePatterns
from tributary.contract.topic_form import SCHEMA_AND_TABLE, TopicForm

if TYPE_CHECKING:
    from tributary.contract.aws import Aws

Format = Literal["json", "avro"]
Decimals = Literal["number", "base64"]
Times = Literal["adaptive", "adaptive_time_microseconds", "connect", "microseconds", "isostring"]


def _pattern(text: str) -> str:
    try:
        TablePattern.parse(text.removeprefix("!"))
    except NotATablePattern as error:
        raise expecting(error.expected or error.what) from None
    return text


def _patterns(texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        TablePatterns.parse(texts)
    except NotATablePattern as error:
        raise expecting(error.expected or error.what) from None
    return texts


PatternTexts = Annotated[
    tuple[Annotated[str, AfterValidator(_pattern)], ...], BeforeValidator(as_tuple), AfterValidator(_patterns)
]


class Connection(Entry):
    """`[source.NAME.connection]`: the user's own database. Environment variables hold the passwords.

    user          who Debezium logs in as; None: the user that Tributary creates
    password_env  holds that user's password; None: Tributary, as admin_user, generates one and sets it
    admin_user    prepares the database; None: a person does, with the SQL that `tributary up` writes
    """

    host: Host
    port: Port
    user: str | None = None
    password_env: EnvironmentVariable | None = None
    admin_user: str | None = None
    admin_password_env: EnvironmentVariable | None = None

    def problems(self, entry: str) -> Iterator[Problem]:
        """Yield what no single key shows. `entry` is the connection's name in errors."""
        if (self.admin_user is None) != (self.admin_password_env is None):
            yield Problem(entry, "half of an administrator", *self._half("admin_user", "admin_password_env"))
        if self.admin_user is None and self.password_env is None:
            expected = "password_env, or admin_user and admin_password_env"
            yield Problem(
                entry, "no password to log in with", "neither password_env nor admin_user", expected
            )
        if self.admin_user is not None and self.admin_user == self.user:
            expected = "a separate user for the replication, with fewer rights"
            yield Problem(
                f"{entry}.user", "the administrator must not also replicate", json.dumps(self.user), expected
            )

    def _half(self, one: str, other: str) -> tuple[str, str]:
        given, missing = (one, other) if getattr(self, one) is not None else (other, one)
        return f"{given} without {missing}", f"{one} and {other}, or neither of them"


class ExistingDatabase(Entry):
    """`[aws.source.NAME]`: a database that already exists and that the VPC can reach.

    secret      JSON with the `password` of the user that Debezium logs in as, in the lake's own region
    secret_key  the account's own key that encrypts the secret; None: Secrets Manager's own key does
    """

    host: Host
    port: Port
    secret: SecretArn
    secret_key: KeyArn | None = None


class Events(Entry):
    """The format of a source's events if another connector than Tributary's sends them.

    topic_prefix  Debezium's `topic.prefix`; None: Tributary's own topics
    decimals      how JSON holds a numeric: JsonConverter's `decimal.format`
    times         Debezium's `time.precision.mode`, for events without schemas
    """

    topic_prefix: Annotated[str, matching(r"[A-Za-z0-9._-]+", "a prefix of Kafka topics")] | None = None
    decimals: Decimals = "number"
    times: Times = "adaptive"


class Source(Entry):
    """`[source.NAME]`: a database whose tables become lake tables. An engine's own class adds its entries.

    engine      the key under which the registry of engines finds that class
    tables      patterns as the file has them; `patterns` holds them parsed
    partitions  of each table's Kafka topic
    connection  None: the server that `tributary up` starts
    format      in which Tributary's own connector writes events: JSON with schemas, or Avro whose schemas are
                in the lake's registry
    events      the format of events from another connector than Tributary's

    existing      the engine's class of `[aws.source.NAME]`
    filters_rows  the engine can send only some rows of a table
    is_verifiable  the engine's tables can be compared part by part
    section_on_aws  the section of `[aws]` for the databases that a lake creates. None: it creates none
    alarms_on_aws  the entries of `[aws.alarms]` for those databases alone
    """

    existing: ClassVar[type[ExistingDatabase]] = ExistingDatabase
    filters_rows: ClassVar[bool] = False
    is_verifiable: ClassVar[bool] = False
    section_on_aws: ClassVar[str | None] = None
    alarms_on_aws: ClassVar[tuple[str, ...]] = ()

    engine: str
    tables: PatternTexts
    partitions: Annotated[int, Field(ge=1, le=256)] = 1
    connection: Connection | None = None
    format: Format = "json"
    events: Events = Events()

    _name: str = PrivateAttr(default="")

    @property
    def name(self) -> str:
        """The name from the section's title. It is not a key of the section."""
        return self._name

    def named(self, name: str) -> Self:
        """Return the same source with this name."""
        source = self.model_copy()
        source._name = name
        return source

    @cached_property
    def patterns(self) -> TablePatterns:
        return TablePatterns.parse(self.tables)

    def matches(self, schema: str, table: str) -> bool:
        """Tell whether the table is one of this source's tables."""
        return self.patterns.matches(schema, table)

    @property
    def has_other_connector(self) -> bool:
        """Tell whether another connector than Tributary's sends tables, perhaps from another database."""
        return self.events.topic_prefix is not None

    @property
    def routed_events(self) -> Outbox | None:
        """The table of events that the connector routes to a topic for each type. None: it routes nothing."""
        return None

    def routes_to(self, schema: str) -> bool:
        """Tell whether the lake's tables of this schema hold the events of the outbox."""
        return self.routed_events is not None and self.routed_events.lake_schema == schema

    @property
    def topic_form(self) -> TopicForm:
        """The form of the table topics, which the engine chooses."""
        return SCHEMA_AND_TABLE

    @property
    def item_stream(self) -> ItemStream | None:
        """The stream of items that the Spark app reads itself. None: Debezium sends the changes to Kafka."""
        return None

    def item_rules(self, table: str) -> ItemRules | None:  # noqa: ARG002
        """Return how the items of a table become rows; None if the source has an `item_stream` of None."""
        return None

    def problems(self, entry: str) -> Iterator[Problem]:  # noqa: ARG002
        """Yield what no single key of the section `entry` shows."""
        return iter(())

    def problems_beside(self, name: str, others: Mapping[str, Source]) -> Iterator[Problem]:  # noqa: ARG002
        """Yield what this source and one of the `others` cannot both have. `name` is this one's."""
        return iter(())

    def problems_on_aws(self, name: str, _aws: Aws) -> Iterator[Problem]:  # noqa: ARG002
        """Yield what prevents the lake from creating the database of the source `name` on AWS."""
        return iter(())
