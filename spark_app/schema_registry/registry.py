"""The interfaces of a schema registry, and the ways in which asking it can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from spark_app.schema_registry.framing import SchemaId
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import EditLakeFile

_MOST_KEPT = 2_000


class SchemaUnknown(Exception):
    """The registry has no Avro schema with this id."""


class OtherFraming(SchemaUnknown):
    """The id is of another kind of registry than this one."""


class RegistryAway(ConnectionError):
    """The registry does not answer, or cannot answer now. Asking again later can succeed."""


class RegistryRefused(TributaryError):
    """The registry answers, but never with a schema: a wrong login, or an address of something else."""


def another_kind(where: str, found: str, expected: str) -> RegistryRefused:
    """Return the error for an address at which something else than the wanted registry answers."""
    return RegistryRefused(
        "What answers at the schema registry's address is not this kind of registry",
        where=where,
        found=found,
        expected=expected,
        remedy=EditLakeFile("check address and kind in [registry]"),
    )


class SchemaRegistry(Protocol):
    """A registry of Avro schemas."""

    def schema(self, schema_id: SchemaId, /) -> str:
        """Return the Avro schema with this id.

        Raises `SchemaUnknown`, `RegistryAway` or `RegistryRefused`."""


class SchemaRefused(TributaryError):
    """A schema that the registry does not take."""


def schema_refused(topic: str, found: str) -> SchemaRefused:
    """Return the error for a schema that does not fit the earlier ones of the topic."""
    return SchemaRefused(
        "the schema registry refuses the schema of the topic's messages",
        where=topic,
        found=found,
        expected="a schema that fits the registry's rules for the topic's earlier schemas",
        remedy=[
            "Change the query so that its columns fit, or relax the registry's rule for this topic.",
            EditLakeFile("give the derived table another topic"),
        ],
    )


class SchemaStore(Protocol):
    """A registry that takes schemas for the values of topics."""

    def add(self, topic: str, schema: str, /) -> SchemaId:
        """Return the id of the schema of the topic's values, which the registry then has.

        Raises `SchemaRefused`, `RegistryAway` or `RegistryRefused`."""


@dataclass
class KeptIds:
    """A registry that asks another one for the id of each schema once."""

    ask: Callable[[str, str], SchemaId]
    _kept: dict[tuple[str, str], SchemaId] = field(default_factory=dict, repr=False)

    def add(self, topic: str, schema: str) -> SchemaId:
        if (topic, schema) not in self._kept:
            self._kept[topic, schema] = self.ask(topic, schema)
        return self._kept[topic, schema]


@dataclass
class KeptSchemas:
    """A registry that asks another one for each schema once. An id never gets another schema."""

    ask: Callable[[SchemaId], str]
    _kept: dict[SchemaId, str] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def schema(self, schema_id: SchemaId) -> str:
        # Tables ask at the same time, and most of them ask only once.
        with self._lock:
            if schema_id not in self._kept:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[schema_id] = self.ask(schema_id)
            return self._kept[schema_id]
