"""The lake file: the entries of `lake.toml`, their allowed values, and their defaults."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    Field,
    PlainValidator,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import ErrorDetails

from tributary.contract.acceleration import Acceleration
from tributary.contract.alerts import Alerts
from tributary.contract.aws import Aws
from tributary.contract.aws_checks import aws_problems, event_size_problems
from tributary.contract.aws_unused import unused_problems
from tributary.contract.column_types import ColumnTypes
from tributary.contract.derived import (
    DERIVED_SOURCE,
    Derived,
    Topic,
    derived_name_problem,
    derived_problems,
    folders_on_aws,
)
from tributary.contract.engines.registry import (
    SOURCES,
    class_in_file,
    engine_in,
    read_source,
    with_engines,
)
from tributary.contract.entries import (
    Duration,
    Entry,
    Names,
    Port,
    Problem,
    matching,
    named_as,
    toml_key,
)
from tributary.contract.environments import environment_file, environment_problem, in_environment
from tributary.contract.errors import TributaryError
from tributary.contract.hidden_columns import HiddenColumns, hidden_problems
from tributary.contract.naming import LakeNames, SourceNames, lake_name_problem, source_name_problem
from tributary.contract.partitions import (
    KeyPart,
    PartitionColumn,
    PartitionsOrNothing,
    parse_partition,
)
from tributary.contract.remedies import NameLakeFile
from tributary.contract.schema_registry import Registry
from tributary.contract.source import EnvironmentVariable, Source
from tributary.contract.table_name import NotATableName, TableName
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
        file = _LakeFile.model_validate(with_engines(content))
    except ValidationError as error:
        raise _error_of(error.errors(), content, where) from None
    _check_together(file, content, where)
    return _lake_of(file)


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


class Lake(Entry):
    """A whole lake file.

    max_event_mb  None: the kind of Kafka decides
    acceleration  whether the Spark app may (auto) or must (required) use its Java classes
    hash_salt_env the variable with the salt of hashed columns; None: a generated one
    tables        the tables that have an entry, in the file's order, with the defaults for the values that
                  the entry leaves out
    alerts        None: the file has no `[alerts]`
    verify        None: the file has no `[verify]`
    registry      None: the file has no `[registry]`
    aws           None: the file has no `[aws]`
    topics        the topics of Kafka that derived tables can read, by the names that queries use
    derived       the derived tables, in the file's order, by name
    """

    name: str
    max_event_mb: MaxEventMegabytes | None = None
    acceleration: Acceleration = "auto"
    hash_salt_env: EnvironmentVariable | None = None
    sources: tuple[Source, ...]
    defaults: Defaults
    tables: tuple[tuple[TableName, TablePolicy], ...]
    local: Local
    alerts: Alerts | None = None
    verify: Verify | None = None
    bronze: Bronze = Bronze()
    registry: Registry | None = None
    aws: Aws | None = None
    topics: tuple[tuple[str, Topic], ...] = ()
    derived: tuple[tuple[str, Derived], ...] = ()

    @cached_property
    def names(self) -> LakeNames:
        return LakeNames(self.name)

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


class _LakeSection(Entry):
    name: Annotated[str, named_as(lake_name_problem)]
    max_event_mb: MaxEventMegabytes | None = None
    acceleration: Acceleration = "auto"
    hash_salt_env: EnvironmentVariable | None = None


class _LakeFile(Entry):
    """The layout of the file."""

    lake: _LakeSection
    source: dict[
        Annotated[str, named_as(source_name_problem)], Annotated[Source, PlainValidator(read_source)]
    ] = Field(min_length=1)
    defaults: Defaults = Defaults()
    table: dict[str, TablePolicy] = Field(default_factory=dict)
    local: Local = Local()
    alerts: Alerts | None = None
    verify: Verify | None = None
    bronze: Bronze = Bronze()
    registry: Registry | None = None
    aws: Aws | None = None
    topic: dict[Annotated[str, named_as(derived_name_problem)], Topic] = Field(default_factory=dict)
    derived: dict[Annotated[str, named_as(derived_name_problem)], Derived] = Field(default_factory=dict)


def _lake_of(file: _LakeFile) -> Lake:
    return Lake(
        name=file.lake.name,
        max_event_mb=file.lake.max_event_mb,
        acceleration=file.lake.acceleration,
        hash_salt_env=file.lake.hash_salt_env,
        sources=tuple(source.named(name) for name, source in file.source.items()),
        defaults=file.defaults,
        tables=tuple(
            (TableName.parse(name), entry.with_defaults(file.defaults)) for name, entry in file.table.items()
        ),
        local=file.local,
        alerts=file.alerts,
        verify=file.verify,
        bronze=file.bronze,
        registry=file.registry,
        aws=file.aws,
        topics=tuple(file.topic.items()),
        derived=tuple(file.derived.items()),
    )


def _check_together(file: _LakeFile, content: Content, where: str) -> None:
    """Check what only several entries together show. Raises LakeFileError."""
    for problem in chain(
        _source_problems(file),
        _table_problems(file),
        _port_problems(file),
        () if file.alerts is None else file.alerts.problems(),
        _registry_problems(file),
        _aws_problems(file, content),
        derived_problems(file.topic, file.derived, file.source, LakeNames(file.lake.name)),
        folders_on_aws(file.derived) if file.aws is not None else (),
    ):
        where = f"{where}, entry {problem.entry}"
        raise LakeFileError(problem.what, where=where, found=problem.found, expected=problem.expected)


def _source_problems(file: _LakeFile) -> Iterator[Problem]:
    before: dict[str, Source] = {}
    for name, source in file.source.items():
        yield from source.problems(f"[source.{toml_key(name)}]")
        yield from source.problems_beside(name, before)
        before[name] = source
        if source.connection is not None:
            yield from source.connection.problems(f"[source.{name}.connection]")


def _table_problems(file: _LakeFile) -> Iterator[Problem]:
    seen: set[TableName] = set()
    for text in file.table:
        entry = f"[table.{json.dumps(text, ensure_ascii=False)}]"
        try:
            name = TableName.parse(text)
        except NotATableName as error:
            expected = f'{error.expected}, in quotes: [table."shop.public.orders"]'
            yield Problem(entry, error.what, str(error.found), expected)
            continue
        source = file.source.get(name.source)
        if source is None:
            yield Problem(entry, "a table of an unknown source", name.source, " or ".join(file.source))
        elif source.routes_to(name.schema):
            yield from _problems_of_routed(entry, file.table[text])
        elif not source.matches(name.schema, name.table):
            expected = f"a table that [source.{name.source}].tables takes: {', '.join(source.tables)}"
            yield Problem(
                entry, "a table that its source does not take", f"{name.schema}.{name.table}", expected
            )
        if (columns := file.table[text].columns) is not None:
            key, names = file.table[text].key or (), [name for name, _ in columns]
            if not key or not set(key) <= set(names):
                expected = f"key, with columns that it names: {', '.join(names)}"
                found = ", ".join(key) or "no key"
                yield Problem(f"{entry}.columns", "columns without a key", found, expected)
        yield from _problems_of_key_parts(entry, name, file.table[text], source)
        yield from hidden_problems(entry, file.table[text])
        if file.table[text].rows is not None and source is not None and not source.filters_rows:
            found = f'engine = "{source.engine}"'
            able = (engine for engine, one in SOURCES.items() if one.filters_rows)
            expected = f"an engine that can filter the rows that it sends: {', '.join(able)}"
            yield Problem(f"{entry}.rows", "a filter of rows that the database cannot apply", found, expected)
        elif file.table[text].rows is not None and not all(map(_is_plain, (name.schema, name.table))):
            expected = "a table whose names have only letters, digits and underscores"
            yield Problem(f"{entry}.rows", "a filter of rows that Debezium cannot apply", str(name), expected)
        if source is not None and source.item_stream is not None:
            yield from _problems_of_items(entry, file.table[text])
        if name in seen:
            yield Problem(entry, "a second entry for this table", str(name), "one entry for a table")
        seen.add(name)


def _problems_of_key_parts(
    entry: str, name: TableName, policy: TablePolicy, source: Source | None
) -> Iterator[Problem]:
    key = policy.key
    if source is not None and source.routed_events is not None and source.routes_to(name.schema):
        key = (source.routed_events.id,)
    for part in policy.key_parts:
        if key is not None and part.column not in key:
            expected = f"a part of a column of the key: {', '.join(key)}"
            yield Problem(f"{entry}.partition_by", "a part of a column outside the key", str(part), expected)


def _is_plain(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_]+", name) is not None


def _problems_of_routed(entry: str, policy: TablePolicy) -> Iterator[Problem]:
    for name in ("key", "columns", "leave_out", "mask", "hash", "rows"):
        if getattr(policy, name):
            expected = "no such entry: the outbox names the columns, and its id is the key"
            yield Problem(f"{entry}.{name}", "an entry that routed events do not have", "an entry", expected)


def _problems_of_items(entry: str, policy: TablePolicy) -> Iterator[Problem]:
    for name in ("key", "columns"):
        if getattr(policy, name) is not None:
            expected = "no such entry: items bring their key and their columns"
            yield Problem(
                f"{entry}.{name}", "an entry that tables of items do not have", "an entry", expected
            )


def _port_problems(file: _LakeFile) -> Iterator[Problem]:
    users: dict[int, str] = {}
    for field, port in file.local:
        if field.endswith("_port") and isinstance(port, int) and users.setdefault(port, field) != field:
            yield Problem(
                f"[local].{field}",
                "the same port for two servers",
                f"{port}, also the port of {users[port]}",
                "a port of its own",
            )


def _registry_problems(file: _LakeFile) -> Iterator[Problem]:
    if file.registry is not None:
        yield from file.registry.problems()
        yield from () if file.aws is None else file.registry.problems_on_aws()
        return
    for name, source in file.source.items():
        if source.format == "avro":
            expected = 'a section [registry] with kind = "apicurio", "confluent" or "glue"'
            yield Problem(f"[source.{name}].format", "Avro without a schema registry", '"avro"', expected)
    for name, table in file.derived.items():
        if table.writes_avro:
            expected = 'a section [registry] with kind = "apicurio", "confluent" or "glue"'
            where = f"[derived.{name}].topic_format"
            yield Problem(where, "Avro without a schema registry", '"avro"', expected)


def _aws_problems(file: _LakeFile, content: Content) -> Iterator[Problem]:
    if file.aws is None:
        return iter(())
    return chain(
        aws_problems(file.aws, file.lake.name, file.source),
        event_size_problems(file.aws.kafka, file.lake.max_event_mb),
        unused_problems(file.aws, file.source, content["aws"]),
    )


def _error_of(errors: list[ErrorDetails], content: Content, where: str) -> LakeFileError:
    """Word one of pydantic's errors in the file's terms, and count the others."""
    # A misspelled key also leaves a required key missing. The misspelling is the better explanation.
    error = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    others = len(errors) - 1
    loc = tuple(part for part in error["loc"] if part != "[key]")
    what, found, expected, suggestion = _words(error, loc, content)
    remarks = (suggestion, f"Further mistakes in the file: {others}." if others else None)
    entry = f", entry {_entry_name(loc, content)}" if loc else ""
    return LakeFileError(
        what,
        where=f"{where}{entry}",
        found=found,
        expected=expected,
        remedy=" ".join(filter(None, remarks)) or None,
    )


Content = Mapping[str, Any]
"""The content of a lake file, as TOML has it."""

_EXPECTED_TYPE = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a table of entries",
    "model_type": "a table of entries",
    "model_attributes_type": "a table of entries",
    "too_short": "at least one entry",
}


def _words(
    error: ErrorDetails, loc: tuple[int | str, ...], content: Content
) -> tuple[str, str, str, str | None]:
    """Return what is wrong, what was found, what was expected, and perhaps which key was meant."""
    context: Mapping[str, Any] = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            if loc[0] == "table" and isinstance(error["input"], dict):
                expected = 'the name in quotes: [table."source.schema.table"]'
                return "a table's name without quotes", f"[{'.'.join(map(str, loc))}]", expected, None
            known = _keys_at(loc[:-1], content)
            suggestion = _suggestion(str(loc[-1]), known)
            return "unknown key", str(loc[-1]), f"one of {', '.join(known)}", suggestion
        case "missing":
            return "a required entry is missing", "nothing", _meaning_of(loc), None
        case "literal_error":
            suggestion = _suggestion(str(error["input"]), re.findall(r"'([^']*)'", context["expected"]))
            expected = context["expected"].replace("'", '"')
            return "wrong value", _shown(error["input"], loc), expected, suggestion
        case "expected":
            return "wrong value", _shown(error["input"], loc), context["expected"], None
        case "greater_than_equal":
            return "wrong value", _shown(error["input"], loc), f"at least {context['ge']}", None
        case "less_than_equal":
            return "wrong value", _shown(error["input"], loc), f"at most {context['le']}", None
        case "multiple_of":
            return "wrong value", _shown(error["input"], loc), f"a multiple of {context['multiple_of']}", None
        case kind:
            return "wrong type", _shown(error["input"], loc), _EXPECTED_TYPE.get(kind, error["msg"]), None


def _keys_at(loc: tuple[int | str, ...], content: Content) -> list[str]:
    """Return the keys that are allowed in the part of the file at `loc`."""
    model, _ = _sections_of(loc, content)
    return list(model.model_fields)


def _sections_of(loc: tuple[int | str, ...], content: Content) -> tuple[type[BaseModel], int]:
    """Return the model of the innermost section in `loc`, and how many parts of `loc` name sections."""
    model: type[BaseModel] = _LakeFile
    is_name = False
    for depth, part in enumerate(loc):
        if is_name:
            model = class_in_file(model, engine_in(content, str(part)))
            is_name = False
            continue
        field = model.model_fields.get(str(part))
        entry = None if field is None else _entry_in(field.annotation)
        if field is None or entry is None:
            return model, depth
        model, is_name = entry, get_origin(field.annotation) is dict
    return model, len(loc)


def _entry_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation such as `Entry | None` or `dict[str, Entry]` names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_entry_in, get_args(annotation))), None)


def _meaning_of(loc: tuple[int | str, ...]) -> str:
    match loc:
        case ("lake",):
            return 'the section [lake] with name = "…"'
        case ("source",):
            return "at least one section [source.NAME]"
        case _:
            return f"{loc[-1]} = …"


def _suggestion(key: str, known: list[str]) -> str | None:
    close = difflib.get_close_matches(key, known, n=1)
    return f"Did you mean {close[0]}?" if close else None


def _shown(value: object, loc: tuple[int | str, ...]) -> str:
    """Return the value as the file has it, but hide a text that may be a password instead of a variable."""
    if str(loc[-1]).endswith("_env"):
        return "a text of another form" if isinstance(value, str) else f"a {type(value).__name__}"
    match value:
        case dict():
            return "a table of entries"
        case list() | tuple():
            return "[" + ", ".join(_shown(item, ("",)) for item in value) + "]"
        case str() | bool() | int() | float():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _entry_name(loc: tuple[int | str, ...], content: Content) -> str:
    """Return `("table", "a.b.c", "key", 1)` as `[table."a.b.c"].key[1]`."""
    _, depth = _sections_of(loc, content)
    keys = [toml_key(str(part)) for part in loc[:depth]]
    name = f"[{'.'.join(keys)}]" if keys else ""
    for part in loc[depth:]:
        name += f"[{part}]" if isinstance(part, int) else f"{'.' if name else ''}{toml_key(part)}"
    return name
