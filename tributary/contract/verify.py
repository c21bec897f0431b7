"""`[verify]`: how often the lake is compared with its sources, and at what cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from tributary.contract.entries import Duration, Entry, matching

Share = Annotated[str, matching(r"(100|[1-9][0-9]?)%", 'a share of the time, such as "25%"')]


class Verify(Entry):
    """The rules of continuous verification.

    interval         the time from the beginning of a round to that of the next
    rows             about how many rows of a table a round compares
    load             the share of the time of a round in which a source's database may work for it
    statement_seconds  how long one statement may run in the database
    repair           whether a table with differences is read again without being asked for
    """

    interval: Duration = timedelta(minutes=10)
    rows: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 200_000
    load: Share = "25%"
    statement_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    repair: bool = False

    @property
    def share(self) -> float:
        """`load` between 0 and 1."""
        return int(self.load.removesuffix("%")) / 100
