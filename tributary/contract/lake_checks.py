"""What only several entries of a lake file together show to be wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from tributary.contract.aws_checks import aws_problems, event_size_problems
from tributary.contract.aws_unused import unused_problems
from tributary.contract.derived import derived_problems, folders_on_aws
from tributary.contract.engines.registry import SOURCES
from tributary.contract.entries import Problem, toml_key
from tributary.contract.hidden_columns import hidden_problems
from tributary.contract.lake_mistakes import Content
from tributary.contract.naming import LakeNames
from tributary.contract.source import Source
from tributary.contract.table_name import NotATableName, TableName

if TYPE_CHECKING:
    from tributary.contract.lake import LakeFile, TablePolicy


def problems_together(file: LakeFile, content: Content) -> Iterator[Problem]:
    """Yield the mistakes of a file whose single entries are right."""
    yield from chain(
        _source_problems(file),
        _table_problems(file),
        _port_problems(file),
        () if file.alerts is None else file.alerts.problems(),
        _registry_problems(file),
        _aws_problems(file, content),
        derived_problems(file.topic, file.derived, file.source, LakeNames(file.lake.name)),
        folders_on_aws(file.derived) if file.aws is not None else (),
    )


def _source_problems(file: LakeFile) -> Iterator[Problem]:
    before: dict[str, Source] = {}
    for name, source in file.source.items():
        yield from source.problems(f"[source.{toml_key(name)}]")
        yield from source.problems_beside(name, before)
        before[name] = source
        if source.connection is not None:
            yield from source.connection.problems(f"[source.{name}.connection]")


def _table_problems(file: LakeFile) -> Iterator[Problem]:
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


def _port_problems(file: LakeFile) -> Iterator[Problem]:
    users: dict[int, str] = {}
    for field, port in file.local:
        if field.endswith("_port") and isinstance(port, int) and users.setdefault(port, field) != field:
            yield Problem(
                f"[local].{field}",
                "the same port for two servers",
                f"{port}, also the port of {users[port]}",
                "a port of its own",
            )


def _registry_problems(file: LakeFile) -> Iterator[Problem]:
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


def _aws_problems(file: LakeFile, content: Content) -> Iterator[Problem]:
    if file.aws is None:
        return iter(())
    return chain(
        aws_problems(file.aws, file.lake.name, file.source),
        event_size_problems(file.aws.kafka, file.lake.max_event_mb),
        unused_problems(file.aws, file.source, content["aws"]),
    )
