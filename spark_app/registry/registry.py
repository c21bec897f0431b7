"""The interface of a schema registry, and the ways in which asking it can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from spark_app.registry.framing import SchemaId
from tributary.contract.errors import TributaryError

_MOST_KEPT = 2_000


class SchemaUnknown(Exception):
    """The registry has no Avro schema with this id."""


class OtherFraming(SchemaUnknown):
    """The id is of another kind of registry than this one."""


class RegistryAway(ConnectionError):
    """The registry does not answer, or cannot answer now. Asking again later can succeed."""


class RegistryRefused(TributaryError):
    """The registry answers, but never with a schema: a wrong login, or an address of something else."""


class SchemaRegistry(Protocol):
    """A registry of Avro schemas."""

    def schema(self, schema_id: SchemaId, /) -> str:
        """Return the Avro schema with this id.

        Raises `SchemaUnknown`, `RegistryAway` or `RegistryRefused`."""


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
