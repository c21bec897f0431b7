"""Check that the Spark app of a deployed lake may change bronze."""

from __future__ import annotations

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import BringUp


class BronzeFixed(TributaryError):
    """The Spark app on AWS may not, or cannot, change bronze. Nothing was changed."""


def require_changeable_bronze(lake: Lake) -> None:
    """Check that a job may change bronze, as far as the lake file says. Raises BronzeFixed."""
    if lake.aws is not None and lake.aws.connect.sink is not None:
        raise BronzeFixed(
            "Events can only be removed from bronze if Tributary's own sink writes it",
            where=f"lake {lake.name}, entry [aws.connect.sink]",
            expected="no such entry",
        )
    if not lake.bronze.is_changed:
        raise BronzeFixed(
            "The job may not change bronze",
            where=f"lake {lake.name}, entries [bronze].erase and [bronze].retention",
            found="neither",
            expected="erase = true, or how long bronze keeps events as retention",
            remedy=[
                "Set one of them. The deployment then allows the Spark role to change bronze.",
                BringUp(),
            ],
        )
