"""The queries of derived tables: what each reads, and in which order the tables are brought up to date."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tributary.contract.derived import DERIVED_SCHEMA, DERIVED_SOURCE, Derived, Topic
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import EditLakeFile

_DIALECT = "spark"
_NOT_BY_INPUT_ALONE = frozenset(
    {
        *("CURDATE", "CURRENT_DATE", "CURRENT_DATETIME", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER"),
        *("INPUT_FILE_NAME", "LOCALTIMESTAMP", "MONOTONICALLY_INCREASING_ID", "NOW", "RAND", "RANDN"),
        *("JAVA_METHOD", "RANDOM", "RANDSTR", "REFLECT", "SHUFFLE", "SPARK_PARTITION_ID", "TRY_REFLECT"),
        *("UNIFORM", "UUID"),
    }
)
"""Functions of Spark whose results do not follow from the rows of the inputs."""


_WINDOW_FUNCTION = re.compile(r"window(?=\s*\()", re.IGNORECASE)
"""The beginning of a call of Spark's function for windows of time, or of a text that looks like one."""


class QueryNotUsable(TributaryError):
    """A query from which no table can be derived."""


@dataclass(frozen=True, order=True)
class LakeInput:
    """A table of the lake, by the one, two or three parts of its name that the query uses."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, order=True)
class DerivedInput:
    """Another derived table."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, order=True)
class TopicInput:
    """A topic of Kafka, by the name of its section in the lake file."""

    name: str

    def __str__(self) -> str:
        return f"topic {self.name}"


Input = LakeInput | DerivedInput | TopicInput


@dataclass(frozen=True)
class Reference:
    """A place in a query's text that names an input: `text[start:end]`.

    `short` is the name by which the query's columns name the table if it has no alias there.
    """

    input: Input
    start: int
    end: int
    short: str
    has_alias: bool


@dataclass(frozen=True)
class SqlQuery:
    """A query in Spark's SQL. The references are in the order of the text."""

    text: str
    references: tuple[Reference, ...]

    @property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(dict.fromkeys(reference.input for reference in self.references))

    def over(self, views: Mapping[Input, str]) -> str:
        """Return the text with the names of views in place of the names of inputs."""
        pieces, at = [], 0
        for reference in self.references:
            alias = "" if reference.has_alias else f" AS `{reference.short}`"
            pieces += [self.text[at : reference.start], views[reference.input], alias]
            at = reference.end
        return "".join([*pieces, self.text[at:]])


@dataclass(frozen=True)
class PythonQuery:
    """A file with a function `derive`. Its parameters are DataFrames of the inputs, in their order."""

    path: str
    source: str
    inputs: tuple[Input, ...]

    @property
    def text(self) -> str:
        return self.source


Query = SqlQuery | PythonQuery


@dataclass(frozen=True)
class _Derivation:
    name: str
    entry: Derived
    query: Query

    @property
    def key(self) -> tuple[str, ...]:
        return self.entry.key

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.query.inputs

    @property
    def tables(self) -> tuple[LakeInput | DerivedInput, ...]:
        return tuple(one for one in self.inputs if not isinstance(one, TopicInput))

    @property
    def needs(self) -> frozenset[str]:
        """The derived tables that it reads."""
        return frozenset(one.name for one in self.inputs if isinstance(one, DerivedInput))

    @cached_property
    def digest(self) -> str:
        """A digest of everything that the rows follow from, besides the inputs' rows."""
        content = json.dumps([self.query.text, list(self.key), *self._definitions()])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _definitions(self) -> Iterator[object]:
        """Yield what the inputs are, as values of JSON."""
        yield [str(one) for one in self.inputs]


@dataclass(frozen=True)
class TableDerivation(_Derivation):
    """Follows from tables alone: always what the query gives over their current rows."""


@dataclass(frozen=True)
class StreamDerivation(_Derivation):
    """Follows from the events of topics, and perhaps from tables as they are when an event is read."""

    definitions: Mapping[str, Topic]
    """The lake file's sections of the topics, by name."""

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.inputs if isinstance(one, TopicInput))

    def _definitions(self) -> Iterator[object]:
        yield from super()._definitions()
        for name in self.topics:
            topic = self.definitions[name]
            yield {
                "topic": topic.topic or name,
                "columns": [[column, of_type.name, *of_type.arguments] for column, of_type in topic.columns],
                "event_time": topic.event_time,
                "watermark": None if topic.watermark is None else topic.watermark.total_seconds(),
                "unique": topic.unique,
            }


Derivation = TableDerivation | StreamDerivation


@dataclass(frozen=True)
class Derivations:
    """The derived tables of a lake.

    ordered  those whose query can be used, each after all that it reads
    errors   why the others cannot be brought up to date, by name
    """

    ordered: tuple[Derivation, ...]
    errors: Mapping[str, TributaryError]


def read_derivations(lake: Lake, folder: Path) -> Derivations:
    """Read the queries of the lake's derived tables. `folder` is the one with the lake file."""
    found: list[Derivation] = []
    errors: dict[str, TributaryError] = {}
    for name, entry in lake.derived:
        try:
            found.append(derivation(lake, name, entry, _query_text(name, entry, folder)))
        except TributaryError as error:
            errors[name] = error
    ordered, in_cycles = in_order(found)
    return Derivations(ordered, {**errors, **{name: _cycle(name, path) for name, path in in_cycles.items()}})


def derivation(lake: Lake, name: str, entry: Derived, text: str) -> Derivation:
    """Return the derived table of an entry. `text` is its query. Raises QueryNotUsable."""
    where = f"[derived.{name}]"
    if entry.python is None:
        query: Query = parse_sql(lake, text, where)
    else:
        inputs = tuple(_input(lake, tuple(one.split("."))) for one in entry.inputs or ())
        query = PythonQuery(entry.python, text, inputs)
    if not query.inputs:
        raise QueryNotUsable(
            "the query reads no table", where=where, expected="a table or a topic after FROM"
        )
    if any(isinstance(one, TopicInput) for one in query.inputs):
        return StreamDerivation(name, entry, query, dict(lake.topics))
    return TableDerivation(name, entry, query)


def _words_of_parser(text: str) -> str:
    """Return the parser's first sentence in words of SQL: it names classes of its own."""
    first = text.partition("\n")[0].rstrip(".")
    return re.sub(
        r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>",
        lambda missing: f"A part of {missing[1]} is missing",
        first,
    )


def parse_sql(lake: Lake, text: str, where: str) -> SqlQuery:
    """Parse a query, and find what it reads. Raises QueryNotUsable."""
    # It takes a fifth of a second to import, and most commands need no query.
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        statements = [
            statement for statement in parse(parseable(text), read=_DIALECT) if statement is not None
        ]
    except SqlglotError as error:
        raise QueryNotUsable(
            "the query is not SQL that Spark reads",
            where=where,
            found=_words_of_parser(str(error)),
            expected="SELECT …, as Spark's SQL has it",
        ) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise QueryNotUsable("the query is not one SELECT", where=where, expected="one statement: SELECT …")
    tree = statements[0]
    for function in tree.find_all(exp.Func):
        name = (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).upper()
        if name in _NOT_BY_INPUT_ALONE or (name in ("UNIX_TIMESTAMP", "STR_TO_UNIX") and not function.this):
            raise QueryNotUsable(
                "the query's result does not follow from its inputs alone",
                where=where,
                found=f"{name.lower()}()",
                expected="only functions that give the same result each time",
                remedy="Leave the function out. A query over the derived table can use it.",
            )
    if tree.find(exp.TableSample) is not None:
        raise QueryNotUsable(
            "the query's result does not follow from its inputs alone",
            where=where,
            found="TABLESAMPLE",
            expected="rows that are the same each time",
            remedy="Choose the rows by a column, such as WHERE id % 10 = 0.",
        )
    with_names = {cte.alias for cte in tree.find_all(exp.CTE)}
    references = []
    for table in tree.find_all(exp.Table):
        if not table.name or (not table.db and table.name in with_names):
            continue
        parts, places = tuple(part.name for part in table.parts), [part.meta for part in table.parts]
        if not all("start" in place for place in places):
            raise QueryNotUsable(
                "a table's name is not where it can be found", where=where, found=table.sql()
            )
        references.append(
            Reference(
                input=_input(lake, parts),
                start=places[0]["start"],
                end=places[-1]["end"] + 1,
                short=parts[-1],
                has_alias=bool(table.alias),
            )
        )
    return SqlQuery(text, tuple(sorted(references, key=lambda one: one.start)))


def parseable(text: str) -> str:
    """Return the text as sqlglot can parse it, with all names at the same places.

    sqlglot takes `window(` after GROUP BY for the clause WINDOW.
    """
    return _WINDOW_FUNCTION.sub("windo_", text)


def in_order(
    found: Sequence[Derivation],
) -> tuple[tuple[Derivation, ...], Mapping[str, tuple[str, ...]]]:
    """Return the derived tables, each after the tables that it reads, and the cycles, by their tables."""
    every = {one.name: one for one in found}
    in_cycles = {name: way for name in every if (way := _way_back(name, every)) is not None}
    left = {name: one for name, one in every.items() if name not in in_cycles}
    ordered: list[Derivation] = []
    while left:
        ready = [one for one in left.values() if not one.needs & left.keys()]
        ordered += ready
        for one in ready:
            del left[one.name]
    return tuple(ordered), in_cycles


def _way_back(name: str, among: Mapping[str, Derivation]) -> tuple[str, ...] | None:
    """Return the shortest way from a table over its inputs back to itself, or None if there is none."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen = {name}
    while ways:
        longer = []
        for way in ways:
            for needed in sorted(among[way[-1]].needs & among.keys()):
                if needed == name:
                    return (*way, name)
                if needed not in seen:
                    seen.add(needed)
                    longer.append((*way, needed))
        ways = longer
    return None


def depend_on(wanted: Iterable[str], ordered: Sequence[Derivation]) -> tuple[Derivation, ...]:
    """Return the wanted derived tables and all that they read, in the same order."""
    names, found = set(wanted), []
    for one in reversed(ordered):
        if one.name in names:
            names |= one.needs
            found.append(one)
    return tuple(reversed(found))


def _input(lake: Lake, parts: tuple[str, ...]) -> Input:
    """Return what a name in a query stands for. A topic or a derived table goes before a lake table."""
    topics, derived = dict(lake.topics), dict(lake.derived)
    if len(parts) == 1 and parts[0] in topics:
        return TopicInput(parts[0])
    if parts[-1] in derived and parts[:-1] in ((), (DERIVED_SCHEMA,), (DERIVED_SOURCE, DERIVED_SCHEMA)):
        return DerivedInput(parts[-1])
    if parts[:-1] == (DERIVED_SOURCE, DERIVED_SCHEMA):
        raise QueryNotUsable(
            "the query reads a derived table that the lake file does not have",
            found=parts[-1],
            expected=f"one of {', '.join(derived)}",
        )
    if len(parts) == 3 and parts[0] not in {source.name for source in lake.sources}:
        names = ", ".join(source.name for source in lake.sources)
        raise QueryNotUsable(
            "the query reads a table of an unknown source", found=".".join(parts), expected=f"one of {names}"
        )
    if len(parts) > 3:
        raise QueryNotUsable("not the name of a table", found=".".join(parts), expected="source.schema.table")
    return LakeInput(parts)


def _query_text(name: str, entry: Derived, folder: Path) -> str:
    if entry.needed_file is None:
        return entry.sql or ""
    path = folder / entry.needed_file
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        # The text of an OSError has the path, too.
        reason = error.strerror if isinstance(error, OSError) else error
        raise QueryNotUsable(
            "the file with the query cannot be read", where=f"[derived.{name}]", found=f"{path}: {reason}"
        ) from error


def _cycle(name: str, path: Iterable[str]) -> TributaryError:
    return QueryNotUsable(
        "the derived table would have to be read to derive it",
        where=f"[derived.{name}]",
        found=" reads ".join(path),
        remedy=EditLakeFile("let one of these queries read another table"),
    )


def lineage(derivations: Sequence[Derivation]) -> Iterator[tuple[str, str]]:
    """Yield each dependency: a derived table, and what it reads."""
    for one in derivations:
        for read in one.inputs:
            yield one.name, str(read)
