"""The lake is read only as often as somebody looks."""

from __future__ import annotations

import asyncio

from tributary.api.kept import Kept


def test_many_pages_cost_one_reading() -> None:
    readings: list[int] = []

    def read() -> int:
        readings.append(1)
        return len(readings)

    async def look() -> list[int]:
        kept = Kept(read, seconds=60)
        return list(await asyncio.gather(*(kept.get() for _ in range(50))))

    assert asyncio.run(look()) == [1] * 50


def test_an_old_value_is_read_again() -> None:
    values = iter((1, 2))
    kept = Kept(lambda: next(values), seconds=0)

    async def look() -> list[int]:
        return [await kept.get(), await kept.get()]

    assert asyncio.run(look()) == [1, 2]
