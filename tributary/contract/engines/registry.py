"""The engines that a lake file can name, and how an entry finds the class of its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator
from pydantic_core import PydanticKnownError

from tributary.contract.engines.dynamodb import DynamoDbSource
from tributary.contract.engines.mariadb import MariaDbSource
from tributary.contract.engines.mysql import MySqlSource
from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.source import ExistingDatabase, Source

SOURCES: dict[str, type[Source]] = {
    "postgres": PostgresSource,
    "mysql": MySqlSource,
    "mariadb": MariaDbSource,
    "sqlserver": SqlServerSource,
    "dynamodb": DynamoDbSource,
}
"""The class of `[source.NAME]`, by the value of its key `engine`."""


@dataclass(frozen=True)
class OfEngine:
    """A part of the file without an engine's name, with the engine's name from the source's section."""

    engine: object
    content: object


def read_source(content: object) -> Source:
    """Return the `[source.NAME]` as its engine's class. Raises pydantic's ValidationError."""
    if not isinstance(content, dict):
        return Source.model_validate(content)
    if (of_engine := _class_of(content.get("engine"))) is not None:
        return of_engine.model_validate(content)
    # The keys of an unknown engine cannot be checked.
    unknown = {key for source in SOURCES.values() for key in source.model_fields} - {*Source.model_fields}
    return _OfNoEngine.model_validate({key: value for key, value in content.items() if key not in unknown})


def read_existing(content: object) -> ExistingDatabase:
    """Return the `[aws.source.NAME]` as its engine's class. Raises pydantic's ValidationError."""
    if not isinstance(content, OfEngine):
        return ExistingDatabase.model_validate(content)
    of_engine = _class_of(content.engine)
    existing = _ExistingOfNoEngine if of_engine is None else of_engine.existing
    return existing.model_validate(content.content)


def class_in_file(model: type[BaseModel], engine: object) -> type[BaseModel]:
    """Return the engine's own class for an entry whose class in the file's layout is `model`."""
    of_engine = _class_of(engine) or Source
    return {Source: of_engine, ExistingDatabase: of_engine.existing}.get(model, model)


def with_engines(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the file with each `[aws.source.NAME]` marked by the engine that `[source.NAME]` names."""
    aws = content.get("aws")
    existing = aws.get("source") if isinstance(aws, dict) else None
    if not isinstance(aws, dict) or not isinstance(existing, dict):
        return content
    marked = {name: OfEngine(engine_in(content, name), entry) for name, entry in existing.items()}
    return {**content, "aws": {**aws, "source": marked}}


def engine_in(content: Mapping[str, Any], source: str) -> object:
    """Return the engine's name in the source's section, or None if there is none."""
    sources = content.get("source")
    entry = sources.get(source) if isinstance(sources, dict) else None
    return entry.get("engine") if isinstance(entry, dict) else None


def _class_of(engine: object) -> type[Source] | None:
    return SOURCES.get(engine) if isinstance(engine, str) else None


def _known_engine(_: object) -> str:
    names = [f"'{name}'" for name in SOURCES]
    listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    raise PydanticKnownError("literal_error", {"expected": listed})


class _OfNoEngine(Source):
    """A source with a missing or unknown engine. The rest is still read, to find other mistakes."""

    engine: Annotated[str, PlainValidator(_known_engine)]
    connection: Any = None


class _ExistingOfNoEngine(ExistingDatabase):
    """A database whose source is missing or has no known engine, so any key is accepted."""

    model_config = ConfigDict(extra="ignore")

    port: Any = None
