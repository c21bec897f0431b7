"""The lake file's derived tables and the topics that they read: entries, allowed values, and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field

from tributary.contract.column_types import ColumnTypes
from tributary.contract.entries import Duration, Entry, Names, Problem, matching, toml_key
from tributary.contract.naming import LakeNames
from tributary.contract.source import Source
from tributary.contract.table_name import TableName

DERIVED_SOURCE, DERIVED_SCHEMA = "derived", "tables"
"""The names under which derived tables are stored, as in `derived.tables.totals`. No database has them."""

KAFKA_COLUMNS = ("kafka_partition", "kafka_offset", "kafka_timestamp")
"""Where an event stands in its topic. Queries can use these columns like the event's own."""

_MOST_DIGITS = 38
"""How many digits a number can have in Spark."""

TYPES_IN_JSON = frozenset(
    {
        *("boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric"),
        *(
            "text",
            "varchar",
            "char",
            "uuid",
            "json",
            "jsonb",
            "date",
            "timestamp",
            "timestamp with time zone",
        ),
    }
)
"""The types that a topic's columns can have."""

_S3 = "s3://"
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_MAX_NAME = 48

Format = Literal["parquet", "csv"]
TopicFormat = Literal["json", "avro"]
FilePath = Annotated[
    str,
    matching(
        r"(?!.*(^|/)\.\.?(/|$))[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*",
        'a path below the folder of the lake file, such as "derived/totals.sql"',
    ),
]
KafkaTopic = Annotated[
    str, matching(r"[A-Za-z0-9._-]{1,249}", "a topic: letters, digits, dots, underscores and hyphens")
]
Folder = Annotated[
    str,
    matching(
        r"(s3://[a-z0-9.-]+(/[^\s]+)?|/[^\s]+)", 'a folder, such as "s3://bucket/totals" or "/tmp/totals"'
    ),
]
Text = Annotated[str, Field(min_length=1)]


class Topic(Entry):
    """`[topic.NAME]`: a topic of Kafka with JSON objects, which derived tables read under this name.

    topic       the topic's name in Kafka; None: NAME
    columns     the fields of the JSON that are read, and their types
    event_time  the column that says when an event happened
    watermark   how late an event may come; a later one is dropped by queries that group by time
    unique      columns that identify an event; one that comes again is dropped
    """

    topic: KafkaTopic | None = None
    columns: ColumnTypes
    event_time: str | None = None
    watermark: Duration | None = None
    unique: Names | None = None

    def problems(self, name: str) -> Iterator[Problem]:
        entry, columns = f"[topic.{toml_key(name)}]", dict(self.columns)
        for column, of_type in self.columns:
            if of_type.name not in TYPES_IN_JSON or of_type.is_array:
                expected = f"one of {', '.join(sorted(TYPES_IN_JSON))}"
                yield Problem(
                    f"{entry}.columns", "a type that JSON cannot bring", f"{column}: {of_type.name}", expected
                )
            if column in KAFKA_COLUMNS:
                expected = f"another name than {', '.join(KAFKA_COLUMNS)}, which say where an event stands"
                yield Problem(f"{entry}.columns", "a name that a column of every topic has", column, expected)
            if of_type.name == "numeric" and of_type.arguments:
                precision, scale = (*of_type.arguments, 0)[:2]
                if not 0 <= scale <= precision <= _MOST_DIGITS or precision == 0:
                    expected = f"1 to {_MOST_DIGITS} digits, and at most as many after the point"
                    found = f"{column}: numeric({precision},{scale})"
                    yield Problem(f"{entry}.columns", "a number that Spark cannot hold", found, expected)
        if self.event_time is not None and not columns.get(self.event_time, _NO_TYPE).name.startswith(
            "timestamp"
        ):
            expected = "one of the columns, with the type timestamp or timestamp with time zone"
            yield Problem(f"{entry}.event_time", "no time of an event", self.event_time, expected)
        if self.watermark is not None and self.event_time is None:
            expected = "event_time, the column that says when an event happened"
            yield Problem(f"{entry}.watermark", "a watermark without a time", "no event_time", expected)
        for column in set(self.unique or ()) - columns.keys():
            yield Problem(f"{entry}.unique", "an unknown column", column, f"one of {', '.join(columns)}")


class Derived(Entry):
    """`[derived.NAME]`: a table that a query keeps up to date.

    key      the columns of the result that identify a row
    sql      the query, in Spark's SQL
    file     a file with the query, as a path from the lake file's folder
    python   a file with a function `derive` that returns a DataFrame; its parameters are the inputs
    inputs   for `python`: what the parameters stand for, in their order
    topic    a topic of Kafka that gets each changed row as a message
    folder   a folder that gets the rows as files
    format   of these files; None: Parquet
    console  whether each changed row is printed

    topic_format  of these messages; None: JSON. Avro has its schema in the lake's registry.
    """

    key: Names
    sql: Text | None = None
    file: FilePath | None = None
    python: FilePath | None = None
    inputs: Names | None = None
    topic: KafkaTopic | None = None
    topic_format: TopicFormat | None = None
    folder: Folder | None = None
    format: Format | None = None
    console: bool = False

    def problems(self, name: str) -> Iterator[Problem]:
        entry = f"[derived.{toml_key(name)}]"
        given = [query for query in ("sql", "file", "python") if getattr(self, query) is not None]
        if len(given) != 1:
            expected = "one of sql, file and python"
            yield Problem(entry, "not one query", " and ".join(given) or "none", expected)
        if (self.python is None) != (self.inputs is None):
            expected = "inputs together with python; the inputs of SQL are the tables that it names"
            found = "no inputs" if self.inputs is None else "inputs without python"
            yield Problem(f"{entry}.inputs", "inputs and query do not fit", found, expected)
        for option, of in (("topic_format", "topic"), ("format", "folder")):
            found = getattr(self, option)
            if found is not None and getattr(self, of) is None:
                yield Problem(f"{entry}.{option}", "a format of nothing", f"no {of}", of)
        for column in self.key:
            if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", column) is None:
                expected = "a column name with letters, digits and underscores, beginning with a letter"
                yield Problem(f"{entry}.key", "not a column's name", column, expected)

    @property
    def writes_avro(self) -> bool:
        return self.topic_format == "avro"

    @property
    def needed_file(self) -> PurePosixPath | None:
        """The file that the entry needs beside the lake file, if any."""
        found = self.file or self.python
        return None if found is None else PurePosixPath(found)


class _NoType:
    name = ""


_NO_TYPE = _NoType()


def derived_table(name: str) -> TableName:
    """Return the name of a derived table in the lake."""
    return TableName(DERIVED_SOURCE, DERIVED_SCHEMA, name)


def derived_name_problem(name: str) -> str | None:
    """Return what the name of a derived table or a topic must be if `name` breaks that rule, else None."""
    if _NAME.fullmatch(name) and len(name) <= _MAX_NAME:
        return None
    return f"at most {_MAX_NAME} lower-case letters, digits and single underscores, beginning with a letter"


def derived_problems(
    topics: Mapping[str, Topic],
    derived: Mapping[str, Derived],
    sources: Mapping[str, Source],
    names: LakeNames,
) -> Iterator[Problem]:
    """Yield what only several entries together show. The queries are not read."""
    yield from _shared_outputs(derived)
    for name, topic in topics.items():
        yield from topic.problems(name)
    for name, table in derived.items():
        yield from table.problems(name)
        for source in sources.values():
            if name in {pattern.table for pattern in source.patterns.include}:
                expected = "a name that no table of a source has"
                yield Problem(f"[derived.{name}]", "a name that a table of a source has", name, expected)
        if name in topics:
            expected = "a name that no topic has"
            yield Problem(f"[derived.{name}]", "a topic and a derived table with one name", name, expected)
        written = topics_named(topics).get(table.topic or "")
        if written is not None:
            expected = "a topic that no section [topic.NAME] reads, so that no result becomes an input"
            yield Problem(f"[derived.{name}].topic", "a topic that is also read", str(table.topic), expected)
        if table.topic is not None and _is_of_lake(table.topic, sources, names):
            expected = "a topic that neither the lake's connectors nor Tributary itself write"
            yield Problem(f"[derived.{name}].topic", "a topic of the lake itself", table.topic, expected)
    if derived and DERIVED_SOURCE in sources:
        expected = "another name, because derived tables are stored under this one"
        yield Problem(f"[source.{DERIVED_SOURCE}]", "a reserved name", DERIVED_SOURCE, expected)


def folders_on_aws(derived: Mapping[str, Derived]) -> Iterator[Problem]:
    """Yield the outputs that a deployed lake could not write."""
    for name, table in derived.items():
        if table.folder is not None and not table.folder.startswith(_S3):
            expected = "a folder in S3, such as s3://bucket/totals, which is in the local S3 on one machine"
            what = "a folder of one machine in a lake with [aws]"
            yield Problem(f"[derived.{name}].folder", what, table.folder, expected)


def _shared_outputs(derived: Mapping[str, Derived]) -> Iterator[Problem]:
    """Yield outputs that two derived tables would write."""
    topics: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name, table in derived.items():
        if table.topic is not None and (other := topics.setdefault(table.topic, name)) != name:
            expected = f"a topic of its own: [derived.{other}] writes this one"
            yield Problem(f"[derived.{name}].topic", "a topic of two derived tables", table.topic, expected)
        if table.folder is None:
            continue
        path = f"{table.folder.rstrip('/')}/"
        for before, other in folders.items():
            # A run replaces all files below a folder.
            if path.startswith(before) or before.startswith(path):
                expected = f"a folder that neither has nor is in that of [derived.{other}]"
                what = "a folder of two derived tables"
                yield Problem(f"[derived.{name}].folder", what, table.folder, expected)
        folders[path] = name


def _is_of_lake(topic: str, sources: Mapping[str, Source], names: LakeNames) -> bool:
    """Return whether the connectors or Tributary itself write the topic."""
    of_sources = [names.source(name, source.topic_form) for name, source in sources.items()]
    table = names.table_of_topic(topic, of_sources)
    return (
        topic.startswith(f"{names.own_topics}.")
        or topic in {source.heartbeat_topic for source in of_sources}
        or (table is not None and table.source in sources)
    )


def topics_named(topics: Mapping[str, Topic]) -> Mapping[str, str]:
    """Return the names of the sections by the topics' names in Kafka."""
    return {topic.topic or name: name for name, topic in topics.items()}
