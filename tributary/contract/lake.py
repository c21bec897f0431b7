"""The lake file: the entries of `lake.toml`, their allowed values, and their defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from tributary.contract.acceleration import Acceleration
from tributary.contract.alerts import Alerts
from tributary.contract.aws import Aws
from tributary.contract.column_types import ColumnTypes
from tributary.contract.derived import DERIVED_SOURCE, Derived, Topic, derived_name_problem
from tributary.contract.engines.registry import read_source, with_engines
from tributary.contract.entries import (
    Duration,
    Entry,
    EnvironmentVariable,
    Names,
    Port,
    matching,
    named_as,
    secret_variables_in,
)
from tributary.contract.environments import environment_file, environment_problem, in_environment
from tributary.contract.errors import TributaryError
from tributary.contract.hidden_columns import HiddenColumns
from tributary.contract.lake_checks import problems_together
from tributary.contract.lake_mistakes import first_mistake
from tributary.contract.naming import LakeNames, SourceNames, lake_name_problem, source_name_problem
from tributary.contract.partitions import KeyPart, PartitionColumn, PartitionsOrNothing, parse_partition
from tributary.contract.remedies import NameLakeFile
from tributary.contract.schema_registry import Registry
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.contract.verify import Verify

Storage = Literal["merge_on_read", "copy_on_write"]
Deletes = Literal["hard", "soft"]


class LakeFileError(TributaryError):
    """A lake file that cannot be read, or that has a value or key that is not allowed."""


def read_lake(path: Path | str, environment: str | None = None) -> Lake:
    """Read the lake file, as it is in an environment. Raises LakeFileError, with the file and the entry."""
    if environment is None:
        return parse_lake(_text_of(Path(path)), where=str(path))
    where = f"{path} with {environment_file(Path(path), environment).name}"
    return _lake_from(read_content(path, environment), where)


def read_content(path: Path | str, environment: str | None = None) -> Mapping[str, Any]:
    """Read the lake file as the values that TOML holds. Raises LakeFileError.

    environment  the one whose own file, beside the lake file, changes some entries; None: no such file
    """
    content = _content_of(_text_of(Path(path)), str(path))
    if environment is None:
        return content
    if (expected := environment_problem(environment)) is not None:
        what = "an environment cannot have this name"
        raise LakeFileError(what, where=str(path), found=environment, expected=expected)
    own = environment_file(Path(path), environment)
    if not own.exists():
        raise LakeFileError(
            f"the lake has no environment {environment}",
            where=str(path),
            expected=f"the file {own.name} in the same folder, with the entries that are different there",
        )
    return in_environment(content, _content_of(_text_of(own), str(own)), environment)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LakeFileError(
            "there is no such lake file",
            where=str(path),
            remedy=NameLakeFile(),
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise LakeFileError("the lake file cannot be read", where=str(path), found=str(error)) from error


def parse_lake(text: str, where: str = "lake.toml") -> Lake:
    """Parse the TOML text. Errors call the text `where`. Raises LakeFileError."""
    return _lake_from(_content_of(text, where), where)


def _content_of(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LakeFileError("the lake file is not TOML", where=where, found=str(error)) from error


def _lake_from(content: Mapping[str, Any], where: str) -> Lake:
    try:
        file = LakeFile.model_validate(with_engines(content))
    except ValidationError as error:
        wrong = first_mistake(error.errors(), content, LakeFile)
        raise _error(where, wrong.entry, wrong.what, wrong.found, wrong.expected, wrong.remedy) from None
    if (problem := next(problems_together(file, content), None)) is not None:
        raise _error(where, problem.entry, problem.what, problem.found, problem.expected)
    return _lake_of(file)


def _error(
    where: str, entry: str, what: str, found: str, expected: str, remedy: str | None = None
) -> LakeFileError:
    place = f"{where}, entry {entry}" if entry else where
    return LakeFileError(what, where=place, found=found, expected=expected, remedy=remedy)


def _names_or_nothing(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    # A list in a file must name at least one column. The empty tuple means that the entry is missing.
    return () if value == () else validate(value)


NamesOrNothing = Annotated[Names, WrapValidator(_names_or_nothing)]
RowCondition = Annotated[
    str,
    # Debezium and Kafka Connect would split or replace a text with the other characters.
    matching(
        r"(?=.*\S)(?:(?!\$\{|--|/\*|;)[^\x00-\x1f])+",
        "a condition of SQL in one line, without ; and comments and ${",
    ),
]
Repair = Literal["automatic", "manual"]
Buckets = Annotated[int, Field(ge=1, le=1024)]
QuarantineLimit = Annotated[
    str,
    matching(
        r"(100|[1-9]?[0-9])%|0|[1-9][0-9]{0,8}",
        'a share of the events, such as "10%", or a number of them, such as "500"',
    ),
]
Memory = Annotated[
    str, matching(r"[1-9][0-9]*[mg]", 'a number of megabytes or gigabytes, such as "1500m" or "2g"')
]


class Defaults(Entry):
    """`[defaults]`: the values for every table whose own entry does not set them.

    history           how far back time travel reaches, at least
    longest_query     how long a query can still read the files that it found when it began
    buckets           file groups of a table, or of each of its partitions, over which the keys are hashed
    quarantine_limit  how many events may be set aside, as a share ("10%") or a number ("500")
    repair            whether a table that differs from its source is read again without being asked for
    """

    storage: Storage = "merge_on_read"
    deletes: Deletes = "hard"
    history: Duration = timedelta(hours=24)
    longest_query: Duration = timedelta(minutes=20)
    buckets: Buckets = 2
    quarantine_limit: QuarantineLimit = "10%"
    repair: Repair = "automatic"


class TablePolicy(Defaults):
    """The settings of one table in the lake. This is also the file's entry `[table."source.schema.table"]`.

    The defaults give every value that the entry leaves out.

    key           the columns that identify a row; None for the primary key that Debezium reports
    partition_by  columns by which the files are partitioned, whose values must not change for a key; or
                  parts of key columns, such as `right(id, 1)`
    columns       for events without schemas: all columns and their types in the source
    leave_out     columns that never leave the source
    mask          columns of which only a constant text leaves the source
    hash          columns of which only a hash with a secret salt leaves the source
    rows          a condition of SQL: only these rows leave the source

    A name in `leave_out`, `mask` or `hash` that ends with a question mark may be missing in the table.
    """

    key: Names | None = None
    partition_by: PartitionsOrNothing = ()
    columns: ColumnTypes | None = None
    leave_out: NamesOrNothing = ()
    mask: NamesOrNothing = ()
    hash: NamesOrNothing = ()
    rows: RowCondition | None = None

    @property
    def hidden(self) -> HiddenColumns:
        return HiddenColumns.parse(self.leave_out, self.mask, self.hash)

    @property
    def partitions(self) -> tuple[PartitionColumn, ...]:
        return tuple(map(parse_partition, self.partition_by))

    @property
    def key_parts(self) -> tuple[KeyPart, ...]:
        """The parts of key columns that partition the table. Each is an additional column of the table."""
        return tuple(part for part in self.partitions if isinstance(part, KeyPart))

    def may_be_quarantined(self, events: int) -> float:
        """Return how many of this many events may be set aside."""
        if self.quarantine_limit.endswith("%"):
            return events * int(self.quarantine_limit[:-1]) / 100
        return int(self.quarantine_limit)

    def with_defaults(self, defaults: Defaults) -> TablePolicy:
        """Return the policy, with a default for each value that this entry leaves out."""
        missing = {name: value for name, value in defaults if name not in self.model_fields_set}
        return self.model_copy(update=missing)


class Bronze(Entry):
    """`[bronze]`: how long bronze keeps events, and who may change it.

    retention  how long bronze keeps events that the tables have applied. None: forever
    erase      on AWS, the Spark app may change bronze, so that `tributary erase --aws` can forget rows
    """

    retention: Duration | None = None
    erase: bool = False

    @property
    def is_changed(self) -> bool:
        """Return whether the Spark app on AWS may change and remove what bronze holds."""
        return self.erase or self.retention is not None


class Local(Entry):
    """`[local]`: settings of `tributary up` on this machine. A port of None means any free port.

    item_disorder  the local DynamoDB sends records late and twice, too, as AWS's may
    """

    postgres_port: Port | None = None
    mariadb_port: Port | None = None
    kafka_port: Port | None = None
    connect_port: Port | None = None
    s3_port: Port | None = None
    apicurio_port: Port | None = None
    dynamodb_port: Port | None = None
    kinesis_port: Port | None = None
    item_disorder: bool = False
    spark_memory: Memory = "2g"

    @property
    def fixed_ports(self) -> dict[str, int]:
        """The ports by the service, without the free ones."""
        entries = {name: getattr(self, name) for name in type(self).model_fields if name.endswith("_port")}
        return {name.removesuffix("_port"): port for name, port in entries.items() if port is not None}


MaxEventMegabytes = Annotated[int, Field(ge=1, le=512)]


class LakeSection(Entry):
    """`[lake]`.

    max_event_mb   None: the kind of Kafka decides
    acceleration   whether the Spark app may (auto) or must (required) use its Java classes
    hash_salt_env  the variable with the salt of hashed columns; None: a generated one
    """

    name: Annotated[str, named_as(lake_name_problem)]
    max_event_mb: MaxEventMegabytes | None = None
    acceleration: Acceleration = "auto"
    hash_salt_env: EnvironmentVariable | None = None


class _OtherSections(Entry):
    """The sections that a lake has as the file has them. None: the file has no such section."""

    defaults: Defaults = Defaults()
    local: Local = Local()
    alerts: Alerts | None = None
    verify: Verify | None = None
    bronze: Bronze = Bronze()
    registry: Registry | None = None
    aws: Aws | None = None


class Lake(LakeSection, _OtherSections):
    """A whole lake file.

    tables   the tables that have an entry, in the file's order, with the defaults for the values that the
             entry leaves out
    topics   the topics of Kafka that derived tables can read, by the names that queries use
    derived  the derived tables, in the file's order, by name
    """

    sources: tuple[Source, ...]
    tables: tuple[tuple[TableName, TablePolicy], ...]
    topics: tuple[tuple[str, Topic], ...] = ()
    derived: tuple[tuple[str, Derived], ...] = ()

    @cached_property
    def names(self) -> LakeNames:
        return LakeNames(self.name)

    @property
    def secret_variables(self) -> frozenset[str]:
        """The environment variables that hold the lake's secrets, wherever the file names them."""
        return frozenset(secret_variables_in(self))

    @property
    def has_registry_here(self) -> bool:
        """Return whether `tributary up` starts an Apicurio, also in the place of Glue's registry."""
        return self.registry is not None and self.registry.address is None

    def source_names(self, source: Source) -> SourceNames:
        return self.names.source(source.name, source.topic_form)

    @property
    def hashes_columns(self) -> bool:
        """Tell whether a table has hashed columns, so that the lake needs a salt."""
        return any(map(self.hashes_columns_of, self.sources))

    def hashes_columns_of(self, source: Source) -> bool:
        """Tell whether a table of the source has hashed columns."""
        return any(table.source == source.name and policy.hash for table, policy in self.tables)

    @property
    def table_topics_regex(self) -> str:
        """A Java regular expression that fully matches the topics of the lake's tables, and nothing else."""
        return self.names.table_topics_regex(map(self.source_names, self.sources))

    @property
    def connected_sources(self) -> tuple[Source, ...]:
        """The sources whose changes Debezium sends to Kafka."""
        return tuple(source for source in self.sources if source.item_stream is None)

    @property
    def item_sources(self) -> tuple[Source, ...]:
        """The sources whose stream of items the Spark app reads itself."""
        return tuple(source for source in self.sources if source.item_stream is not None)

    def source(self, name: str) -> Source:
        """Return the source with this name. Raises LakeFileError if the lake has none."""
        for source in self.sources:
            if source.name == name:
                return source
        raise LakeFileError(
            f"the lake {self.name} has no source with this name",
            found=name,
            expected=" or ".join(source.name for source in self.sources),
        )

    def table_of_topic(self, topic: str) -> TableName | None:
        """Return the table whose changes the topic carries, or None if it is not a topic of the lake.

        The topic can be Tributary's own or have the `topic_prefix` of a source.
        """
        own = self.names.table_of_topic(topic, map(self.source_names, self.sources))
        if own is not None:
            return own
        for source in self.sources:
            prefix = source.events.topic_prefix
            if prefix is not None and topic.startswith(f"{prefix}."):
                found = source.topic_form.table(topic.removeprefix(f"{prefix}.").split("."))
                if found is not None:
                    return TableName(source.name, *found)
        return None

    def policy(self, table: TableName) -> TablePolicy:
        """Return how a table of the lake is kept, with or without an entry of its own."""
        if table.source == DERIVED_SOURCE and self.derived:
            # No source has deleted a row that no longer follows from a query.
            return TablePolicy(**{**dict(self.defaults), "deletes": "hard"})
        policy = dict(self.tables).get(table) or TablePolicy(**dict(self.defaults))
        source = next((source for source in self.sources if source.name == table.source), None)
        if source is None or source.routed_events is None or not source.routes_to(table.schema):
            return policy
        # The key of the record is the order or the customer that an event is about.
        return policy.model_copy(update={"key": (source.routed_events.id,)})


class _FirstSections(Entry):
    lake: LakeSection
    source: dict[
        Annotated[str, named_as(source_name_problem)], Annotated[Source, PlainValidator(read_source)]
    ] = Field(min_length=1)


class LakeFile(_OtherSections, _FirstSections):
    """The layout of the file. Pydantic checks the sections of the last base class first."""

    table: dict[str, TablePolicy] = Field(default_factory=dict)
    topic: dict[Annotated[str, named_as(derived_name_problem)], Topic] = Field(default_factory=dict)
    derived: dict[Annotated[str, named_as(derived_name_problem)], Derived] = Field(default_factory=dict)


def _lake_of(file: LakeFile) -> Lake:
    return Lake(
        **dict(file.lake),
        **{name: getattr(file, name) for name in _OtherSections.model_fields},
        sources=tuple(source.named(name) for name, source in file.source.items()),
        tables=tuple(
            (TableName.parse(name), entry.with_defaults(file.defaults)) for name, entry in file.table.items()
        ),
        topics=tuple(file.topic.items()),
        derived=tuple(file.derived.items()),
    )
