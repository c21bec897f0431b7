"""How a topic's events are written, and where their schemas come from."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_app.positions.source_log import SourceLog
from spark_app.schema_registry.registry import SchemaRegistry
from spark_app.wire.items.item_schemas import ItemSchemas
from spark_app.wire.schema_versions import SchemaVersions
from spark_app.wire.schemas import Schemas
from tributary.contract.item_stream import ItemRules
from tributary.contract.lake import TablePolicy
from tributary.contract.source import Events


@dataclass(frozen=True)
class TopicForm:
    """The form of a topic's events.

    log       how the engine of the source gives positions
    written   what the lake file says about the events
    registry  has the schemas of events that only name them
    items     how the items of the topic become rows; None if Debezium wrote the topic
    """

    log: SourceLog
    written: Events = field(default_factory=Events)
    registry: SchemaRegistry | None = None
    items: ItemRules | None = None

    def schemas(self, policy: TablePolicy) -> Schemas:
        """Return the schemas of a table whose events have not been read yet."""
        if self.items is not None:
            return ItemSchemas(self.items, self.log)
        return SchemaVersions(policy, self.written, self.log, self.registry)
