"""A connector that another process renews is waited for, and is not reported as missing."""

from __future__ import annotations

from typing import Any, cast

import pytest

from connectors.connect_rest import ConnectorUnknown, ConnectRest
from tributary.operations.source_links import config_of, offset_of


class Worker:
    """A worker that knows its connector only from the second question on, if at all."""

    def __init__(self, *, comes_back: bool = True) -> None:
        self.asked, self.comes_back = 0, comes_back

    def offset(self, _: str) -> dict[str, Any]:
        self.asked += 1
        if self.asked == 1 or not self.comes_back:
            raise ConnectorUnknown("unknown")
        return {"pos": 4}

    def config(self, _: str) -> dict[str, str] | None:
        self.asked += 1
        return {"a": "b"} if self.asked > 1 and self.comes_back else None


def test_the_offset_and_the_config_of_a_connector_are_read_once_it_is_renewed() -> None:
    assert offset_of(cast("ConnectRest", Worker()), "a") == {"pos": 4}
    assert config_of(cast("ConnectRest", Worker()), "a") == {"a": "b"}


def test_a_connector_that_stays_away_is_missing() -> None:
    away = cast("ConnectRest", Worker(comes_back=False))
    with pytest.raises(ConnectorUnknown):
        offset_of(away, "a", patience=0.0)
    assert config_of(away, "a", patience=0.0) is None
