"""Which engines the lake file knows, and how an entry finds the class of its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator
from pydantic_core import PydanticKnownError

from tributary.contract.engines.postgres import PostgresSource
from tributary.contract.source import ExistingDatabase, Source

SOURCES: dict[str, type[Source]] = {
    "postgres": PostgresSource,
}
"""The class of `[source.NAME]`, by what its key `engine` says."""


@dataclass(frozen=True)
class OfEngine:
    """A part of the file that does not name its engine, beside the name that the source's section gives."""

    engine: object
    content: object


def read_source(content: object) -> Source:
    """Return the `[source.NAME]` as its engine's class. Raises pydantic's ValidationError."""
    if not isinstance(content, dict):
        return Source.model_validate(content)
    if (of_engine := _class_of(content.get("engine"))) is not None:
        return of_engine.model_validate(content)
    # Nothing tells what the keys of an unknown engine may hold.
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
    """Return the engine's own class of an entry for which the file's layout names `model`."""
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
    """Return what the file calls the engine of the source; None where it does not."""
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
    """A source whose engine is missing or unknown: the rest is read for the sake of further mistakes."""

    engine: Annotated[str, PlainValidator(_known_engine)]
    connection: Any = None


class _ExistingOfNoEngine(ExistingDatabase):
    """A database whose source is missing, or has no known engine: no key of it is a mistake by itself."""

    model_config = ConfigDict(extra="ignore")

    port: Any = None
