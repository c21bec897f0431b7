"""Choose the tables that a run may make: none that the check of its source leaves out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from spark_app.run.look_files import LookStore
from tributary.contract.table_name import TableName


def _every_one(_: str) -> bool:
    return True


@dataclass(frozen=True)
class NewTables:
    """The check of tables that a run has not met before.

    waits          somebody looks at the sources all the time. So a table that no look has met is new, and its
                   next look says whether to take it. Otherwise, such a table is taken.
    is_in_catalog  returns whether the catalog of the source can have a topic's table. It has none of a topic
                   that another connector fills, or of an outbox's events.
    """

    looks: LookStore
    waits: bool = False
    is_in_catalog: Callable[[str], bool] = _every_one

    def allowed(self, tables: Mapping[str, str], read_again: Collection[str]) -> frozenset[str]:
        """Return the topics of the tables that may be made now. `tables` has their names by topic.

        The tables in `read_again` were read since they were mended."""
        looks = self.looks.read_looks()
        return frozenset(
            topic
            for topic, name in tables.items()
            if not self.is_in_catalog(topic)
            or (look := looks.get(TableName.parse(name).source)) is None
            or ((name not in look.held_back or name in read_again) and (name in look.known or not self.waits))
        )
