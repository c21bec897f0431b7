"""Let connectors read tables that they were told not to read, and that the lake can take now."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tributary.contract.table_name import TableName
from tributary.operations.reconcile.proof import SourceLink

SECONDS_BETWEEN_TRIES = 300.0
"""How long to wait after a renewal before another one for the same tables."""


@dataclass(frozen=True)
class _Try:
    tables: frozenset[TableName]
    at: float


@dataclass
class Renewals:
    """The renewals of one process. `tell` gets what a person should know. `clock` counts seconds."""

    tell: Callable[[str], None]
    passing: tuple[type[Exception], ...]
    clock: Callable[[], float] = time.monotonic
    _last: dict[str, _Try] = field(default_factory=dict, init=False)

    def renew(self, link: SourceLink, unread: frozenset[TableName]) -> bool:
        """Renew the source's connector, so that it reads these tables. Return whether that was possible.

        The same tables are not tried again for some minutes. `tell` gets an error of the kinds in `passing`:
        it must not keep the source's other tables from being looked at."""
        source, now = link.source.name, self.clock()
        last = self._last.get(source)
        is_due = last is None or last.tables != unread or now >= last.at + SECONDS_BETWEEN_TRIES
        if not unread or link.renew is None or not is_due:
            return False
        self._last[source] = _Try(unread, now)
        names = ", ".join(map(str, sorted(unread)))
        self.tell(f"The connector of {source} is started again, because it has to read {names} now.")
        try:
            link.renew()
        except self.passing as error:
            self.tell(f"The connector cannot read {names} yet: {error}")
            return False
        return True
