"""The demo's shop tells once that it does not trade, and again only after it did."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import psycopg
import pytest

from tributary.cli import demo
from tributary.cli.demo import trading
from tributary.operations.workspace import Workspace


def test_a_shop_tells_once_that_it_does_not_trade_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, told, is_over = 0, list[str](), threading.Event()

    def trade(_: Any, __: Any, stop: threading.Event, progress: Callable[[str, int], None]) -> None:
        nonlocal tries
        tries += 1
        if tries == 4:
            progress("sell_tickets", 2)
        if tries == 6:
            is_over.set()
            stop.wait(10)
            return
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(demo, "_trade", trade)
    monkeypatch.setattr(demo, "_SECONDS_TO_RETRY", 0)
    with trading(cast(Workspace, None), told.append):
        assert is_over.wait(10)
    assert len(told) == 2
    assert all("connection refused" in text for text in told)
