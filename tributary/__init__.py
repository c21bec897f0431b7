"""Tributary: lake tables that equal the tables of operational databases.

`open_lake` opens a lake to read its tables. Importing this package is cheap: it loads a name when the name is
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_app.schema_registry.registry import RegistryRefused
    from tributary.api.changes import Changes
    from tributary.api.event_payloads import SchemasMissing
    from tributary.api.lake_files import LakeUnreadable
    from tributary.api.open_lake import OpenLake, TableSummary, open_lake
    from tributary.api.quarantine import QuarantinedEvent
    from tributary.api.row_events import NotAKey, RowEvent
    from tributary.api.rows import UnreadableTable
    from tributary.api.sql import QueryError
    from tributary.api.table import PandasMissing, Table, TableAsOf
    from tributary.api.tables import UnknownTable
    from tributary.api.time_travel import NotAMoment, OutOfHistory, ReadInSpark
    from tributary.api.timeline import Commit
    from tributary.contract.errors import TributaryError
    from tributary.contract.table_name import TableName

__all__ = [
    "Changes",
    "Commit",
    "LakeUnreadable",
    "NotAKey",
    "NotAMoment",
    "OpenLake",
    "OutOfHistory",
    "PandasMissing",
    "QuarantinedEvent",
    "QueryError",
    "ReadInSpark",
    "RegistryRefused",
    "RowEvent",
    "SchemasMissing",
    "Table",
    "TableAsOf",
    "TableName",
    "TableSummary",
    "TributaryError",
    "UnknownTable",
    "UnreadableTable",
    "open_lake",
]

_MODULES = {
    "spark_app.schema_registry.registry": ("RegistryRefused",),
    "tributary.api.changes": ("Changes",),
    "tributary.api.event_payloads": ("SchemasMissing",),
    "tributary.api.lake_files": ("LakeUnreadable",),
    "tributary.api.open_lake": ("OpenLake", "TableSummary", "open_lake"),
    "tributary.api.quarantine": ("QuarantinedEvent",),
    "tributary.api.row_events": ("NotAKey", "RowEvent"),
    "tributary.api.rows": ("UnreadableTable",),
    "tributary.api.sql": ("QueryError",),
    "tributary.api.table": ("PandasMissing", "Table", "TableAsOf"),
    "tributary.api.tables": ("UnknownTable",),
    "tributary.api.time_travel": ("NotAMoment", "OutOfHistory", "ReadInSpark"),
    "tributary.api.timeline": ("Commit",),
    "tributary.contract.errors": ("TributaryError",),
    "tributary.contract.table_name": ("TableName",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:
    # If a type checker saw this, it would accept any name.
    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
