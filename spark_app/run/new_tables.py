"""Choose the tables that a run may make: none that the check of its source leaves out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from spark_app.run.look_files import LookStore
from tributary.contract.table_name import TableName


def _nothing(_: TableName) -> bool:
    return False


@dataclass(frozen=True)
class NewTables:
    """The check of tables that a run has not met before.

    waits      somebody looks at the sources all the time. So a table that no look has met is new, and its
               next look says whether to take it. Otherwise, such a table is taken.
    is_routed  returns whether a table has events that no table of the source has
    """

    looks: LookStore
    waits: bool = False
    is_routed: Callable[[TableName], bool] = _nothing

    def allowed(self, names: Collection[str], read_again: Collection[str]) -> frozenset[str]:
        """Return those of the tables that may be made now. `read_again` were read since they were mended."""
        looks = self.looks.read_looks()
        return frozenset(
            name
            for name in names
            if self.is_routed(table := TableName.parse(name))
            or (look := looks.get(table.source)) is None
            or ((name not in look.held_back or name in read_again) and (name in look.known or not self.waits))
        )
