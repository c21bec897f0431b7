"""The entries of the lake file that Aurora clusters of all engines share."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from tributary.contract.entries import Entry, expecting, matching

SERVERLESS = "db.serverless"

DatabaseClass = Annotated[
    str,
    matching(
        r"db\.(serverless|(?!t[0-9])[a-z0-9]+\.[a-z0-9-]+)",
        'an RDS instance class, such as "db.serverless" or "db.r7g.large"; db.t classes have no Data API',
    ),
]
HalfUnits = Annotated[float, Field(ge=0.5, le=256, multiple_of=0.5)]


class Aurora(Entry):
    """The size of a cluster.

    instance        of the writer and the readers. "db.serverless" scales between capacity_min and
                    capacity_max, in Aurora's capacity units of 2 GiB of memory. It never pauses, because a
                    connector reads its log
    readers         additional instances; the first one takes over if the writer fails
    """

    instance: DatabaseClass = SERVERLESS
    capacity_min: HalfUnits = 0.5
    capacity_max: HalfUnits = 4
    readers: Annotated[int, Field(ge=0, le=5)] = 0
    backup_days: Annotated[int, Field(ge=1, le=35)] = 7

    @model_validator(mode="after")
    def _range_of_capacity(self) -> Self:
        if self.capacity_min > self.capacity_max:
            raise expecting("capacity_min that is not above capacity_max")
        return self

    @property
    def is_serverless(self) -> bool:
        return self.instance == SERVERLESS
