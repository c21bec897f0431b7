"""Every physical name that follows from a lake, for any engine: topics, connectors, buckets and paths.

No two lakes, and no two sources of a lake, share a physical name. A lake's name can hold hyphens but no
underscore. A source's name can hold underscores but no hyphen. So a name that contains both stays
unambiguous.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from tributary.contract.errors import TributaryError
from tributary.contract.patterns import is_traceable
from tributary.contract.remedies import EditLakeFile
from tributary.contract.table_name import TableName
from tributary.contract.topic_form import SCHEMA_AND_TABLE, TopicForm

MAX_LAKE_NAME = 24
"""The limit in characters. It leaves room for an account and a region within the 63 of a bucket's name."""

MAX_SOURCE_NAME = 24
"""The limit in characters. A name that an engine builds from lake and source, such as
`tributary_<lake>__<source>`, then has 60 at most."""

QUESTIONS_GROUP = "tributary-questions"
"""The consumer group of the commands' questions to Kafka. It never has members, and commits nothing."""

MAX_TOPIC_NAME = 249
"""Kafka's limit in characters (org.apache.kafka.common.internals.Topic). Debezium truncates a longer name."""

MAX_GLUE_NAME = 255
"""AWS Glue's limit in characters (its API, NameString)."""

_LAKE_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SOURCE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_GLUE_PART = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_GLUE_VIEWS = ("_ro", "_rt")
_TOPIC_ESCAPE = re.compile(r"_u([0-9a-f]{3,4})")


class NameNotAllowed(TributaryError):
    """A name that cannot become part of a physical name."""


def lake_name_problem(name: str) -> str | None:
    """Return what a lake's name must be if `name` breaks that rule, else None."""
    if _LAKE_NAME.fullmatch(name) and 2 <= len(name) <= MAX_LAKE_NAME:
        return None
    return (
        f"2 to {MAX_LAKE_NAME} lower-case letters, digits and single hyphens, beginning with a letter "
        "(it becomes part of bucket names)"
    )


def source_name_problem(name: str) -> str | None:
    """Return what a source's name must be if `name` breaks that rule, else None."""
    if _SOURCE_NAME.fullmatch(name) and len(name) <= MAX_SOURCE_NAME:
        return None
    return (
        f"at most {MAX_SOURCE_NAME} lower-case letters, digits and single underscores, "
        "beginning with a letter (it becomes part of the names of topics and database users)"
    )


@dataclass(frozen=True)
class LakeNames:
    """The names that belong to a whole lake."""

    lake: str

    def source(self, name: str, topic_form: TopicForm) -> SourceNames:
        return SourceNames(self, name, topic_form)

    @property
    def bronze_bucket(self) -> str:
        return f"{self.lake}-bronze"

    @property
    def silver_bucket(self) -> str:
        return f"{self.lake}-silver"

    @property
    def quarantine_bucket(self) -> str:
        return f"{self.lake}-quarantine"

    @property
    def buckets(self) -> tuple[str, str, str]:
        return (self.bronze_bucket, self.silver_bucket, self.quarantine_bucket)

    @property
    def bronze_catalog(self) -> str:
        """Iceberg's catalog name in the sink and in Spark. JdbcCatalog needs the same name in both."""
        return "bronze"

    @property
    def bronze_namespace(self) -> str:
        """Iceberg's namespace. On AWS it is a Glue database."""
        return f"{_with_underscores(self.lake)}_bronze"

    @property
    def bronze_table(self) -> str:
        """The bronze table as `namespace.table`, without the catalog."""
        return f"{self.bronze_namespace}.events"

    @property
    def spark_bronze_table(self) -> str:
        """`catalog.namespace.table`."""
        return f"{self.bronze_catalog}.{self.bronze_table}"

    def spark_records_table(self, source: str) -> str:
        """Return `catalog.namespace.table` for the records of a source whose stream the app reads itself."""
        return f"{self.bronze_catalog}.{self.bronze_namespace}.{self.records_table(source)}"

    def records_table(self, source: str) -> str:
        """Return the name of that table alone."""
        return f"{source}_records"

    @property
    def glue_database(self) -> str:
        """The Glue database of the silver tables."""
        return f"{_with_underscores(self.lake)}_silver"

    @property
    def dbt_database(self) -> str:
        """The Glue database of the tables that a dbt project makes on AWS."""
        return f"{_with_underscores(self.lake)}_dbt"

    @property
    def connect_group(self) -> str:
        """The group id of the local Connect workers."""
        return f"tributary.{self.lake}.connect"

    @property
    def own_topics(self) -> str:
        """How the names of the lake's topics begin that hold no table. A period follows."""
        return f"__tributary.{self.lake}"

    @property
    def connect_offsets_topic(self) -> str:
        return f"{self.own_topics}.connect-offsets"

    @property
    def connect_configs_topic(self) -> str:
        return f"{self.own_topics}.connect-configs"

    @property
    def connect_status_topic(self) -> str:
        return f"{self.own_topics}.connect-status"

    def is_own_connector(self, name: str) -> bool:
        """Tell whether a connector in the lake's own Connect has a name as Tributary gives them."""
        return name.startswith(f"tributary-{self.lake}-")

    @property
    def bronze_connector(self) -> str:
        return f"tributary-{self.lake}-bronze-iceberg"

    @property
    def bronze_control_topic(self) -> str:
        """The topic through which the sink's tasks and their coordinator agree on a commit."""
        return f"{self.own_topics}.bronze-control"

    @property
    def bronze_control_group_prefix(self) -> str:
        return f"tributary.{self.lake}.bronze-control-"

    @property
    def bronze_transactional_prefix(self) -> str:
        return f"tributary.{self.lake}.bronze-"

    @property
    def spark_group_prefix(self) -> str:
        """Consumer group prefix of the Spark app. It is unique, because a lake's name cannot hold a dot."""
        return f"tributary.{self.lake}.spark"

    def table_topics_regex(self, sources: Iterable[SourceNames]) -> str:
        """Return a Java regular expression that fully matches the table topics of these sources only."""
        by_form: dict[TopicForm, list[str]] = {}
        for source in sources:
            by_form.setdefault(source.topic_form, []).append(re.escape(topic_escape(source.source)))
        parts = [f"({'|'.join(names)}){_below_prefix(form)}" for form, names in by_form.items()]
        below_lake = parts[0] if len(parts) == 1 else f"({'|'.join(parts)})"
        return rf"{re.escape(self.lake)}\.{below_lake}"

    def table_of_topic(self, topic: str, sources: Iterable[SourceNames]) -> TableName | None:
        """Return the table whose changes `topic` carries, or None if it is not a table topic of this lake.

        `sources` give the forms of their topics. A topic of a source that the lake no longer has is read in
        the most common form.
        """
        lake, *parts = topic.split(".")
        if lake != self.lake or not parts:
            return None
        source, *names = map(_topic_unescape, parts)
        forms = {known.source: known.topic_form for known in sources}
        form = forms.get(source, SCHEMA_AND_TABLE)
        found = form.table(names)
        if found is not None and found[0] == form.routed:
            found = found[0], parts[-1]
        if found is None or source_name_problem(source) is not None or not all(map(is_traceable, names)):
            return None
        is_escaped_alike = self.source(source, form).topic_name(*found) == topic
        return TableName(source, *found) if is_escaped_alike else None

    def table_path(self, table: TableName) -> str:
        """Return `source/schema/table`, the path below the silver and the quarantine location."""
        return "/".join(_path_escape(part) for part in (table.source, table.schema, table.table))

    def glue_table(self, table: TableName) -> str:
        """Return `source__schema__table`, the name in the silver tables' database. Athena needs lower case.

        A name with other characters than lower-case letters, digits and single underscores is changed to this
        form and gets a digest at its end. So does a name that ends like a view of a merge-on-read table
        (`_ro`, `_rt`).
        """
        parts = (table.source, table.schema, table.table)
        is_plain = all(_GLUE_PART.fullmatch(part) for part in parts) and not table.table.endswith(_GLUE_VIEWS)
        name = "__".join(parts)
        if is_plain and len(name) + len(_GLUE_VIEWS[0]) <= MAX_GLUE_NAME:
            return name
        readable = "__".join(re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_") or "_" for part in parts)
        digest = hashlib.sha256(str(table).encode("utf-8", "surrogatepass")).hexdigest()[:12]
        room = MAX_GLUE_NAME - len(_GLUE_VIEWS[0]) - len(f"__{digest}")
        return f"{readable[:room]}__{digest}"

    def table_of_path(self, path: str) -> TableName | None:
        """Return the table whose `table_path` is `path`, or None if `path` is not a table path."""
        parts = path.strip("/").split("/")
        if len(parts) != 3:
            return None
        name = TableName(*(_path_unescape(part) for part in parts))
        return name if self.table_path(name) == path.strip("/") else None


@dataclass(frozen=True)
class SourceNames:
    """The physical names of one source of a lake."""

    lake: LakeNames
    source: str
    topic_form: TopicForm

    @property
    def topic_prefix(self) -> str:
        """Debezium's `topic.prefix`, before it escapes the whole topic's name."""
        return f"{self.lake.lake}.{self.source}"

    @property
    def heartbeat_topic(self) -> str:
        """AbstractTopicNamingStrategy.heartbeatTopic: not escaped."""
        return f"__debezium-heartbeat.{self.topic_prefix}"

    @property
    def notification_topic(self) -> str:
        """The topic of one partition in which the connector tells how far its snapshots are."""
        return f"{self.lake.own_topics}.{self.source}.notifications"

    @property
    def history_topic(self) -> str:
        """The topic in which a connector keeps its tables' definitions, if its engine's log has none."""
        return f"{self.lake.own_topics}.{self.source}.schema-history"

    @property
    def connect_offsets_topic(self) -> str:
        """The topic in which the source's workers on AWS store Debezium's offsets."""
        return f"{self.lake.own_topics}.{self.source}.connect-offsets"

    def topic(self, schema: str, table: str) -> str:
        """Return the Kafka topic of a table's changes. Raises NameNotAllowed if the table cannot have one."""
        problem = self.topic_problem(schema, table)
        if problem is not None:
            raise NameNotAllowed(
                problem,
                where=str(TableName(self.source, schema, table)),
                remedy=[
                    "Leave the table out, or rename it.",
                    EditLakeFile('exclude it with a pattern such as "!schema.table"'),
                ],
            )
        return self.topic_name(schema, table)

    def topic_problem(self, schema: str, table: str) -> str | None:
        """Return why no topic can name this table, or None if one can."""
        for name in self.topic_form.names(schema, table):
            if not is_traceable(name):
                return f"Debezium cannot quote the name {name!r}, or cannot turn it into a topic's name"
        topic = self.topic_name(schema, table)
        if len(topic) > MAX_TOPIC_NAME:
            return f"its Kafka topic's name would have {len(topic)} characters; Kafka allows {MAX_TOPIC_NAME}"
        return None

    @property
    def connector(self) -> str:
        return f"tributary-{self.lake.lake}-{self.source}-debezium"

    def topic_name(self, schema: str, table: str) -> str:
        """Return the name that Debezium gives the table's topic, even if no topic may have that name."""
        name = table if schema == self.topic_form.routed else topic_escape(table)
        return ".".join([self.table_topics, topic_escape(schema), name])

    @property
    def table_topics(self) -> str:
        """The prefix of all table topics, without the dot that follows it."""
        return ".".join([self.lake.lake, *map(topic_escape, (self.source, *self.topic_form.leading))])


def topic_escape(name: str) -> str:
    """Return the part of a topic's name that Debezium builds from `name`: letters, digits, `-` and `.` stay.

    Each other UTF-16 unit becomes `_u` and its hexadecimal digits: four, but three for U+0100 to U+0FFF and
    U+0000 to U+000F (io.debezium.schema.UnicodeReplacementFunction, AbstractUnicodeTopicNamingStrategy).
    """
    units = name.encode("utf-16-be", "surrogatepass")
    return "".join(_topic_escape_unit(units[i] << 8 | units[i + 1]) for i in range(0, len(units), 2))


def _topic_escape_unit(unit: int) -> str:
    character = chr(unit)
    if character.isascii() and (character.isalnum() or character in ".-"):
        return character
    digits = f"{unit:x}"
    return f"_u00{digits}" if len(digits) <= 2 else f"_u{digits}"


def _topic_unescape(text: str) -> str:
    units = _TOPIC_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _below_prefix(form: TopicForm) -> str:
    """Return the part of a Java regular expression that matches this form's names below the prefix."""
    leading = "".join(rf"\.{re.escape(topic_escape(name))}" for name in form.leading)
    return rf"{leading}\.[^.]+\.[^.]+"


def _path_escape(name: str) -> str:
    """Return `name` in characters that file systems, URLs and Spark's listing do not treat specially.

    Letters, digits, `_` and `-` stay. Another character becomes its code point between tildes, and so does a
    leading underscore, because Hadoop treats names that begin with it as hidden files.
    """
    escaped = "".join(
        character
        if character.isascii() and (character.isalnum() or character in "_-")
        else f"~{ord(character):x}~"
        for character in name
    )
    return f"~5f~{escaped[1:]}" if escaped.startswith("_") else escaped


def _path_unescape(text: str) -> str:
    return re.sub(r"~([0-9a-f]{1,6})~", lambda escape: chr(min(int(escape[1], 16), 0x10FFFF)), text)


def _with_underscores(lake: str) -> str:
    return lake.replace("-", "_")
