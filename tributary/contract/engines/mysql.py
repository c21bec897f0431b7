"""MySQL in the lake file."""

from __future__ import annotations

from typing import Literal

from tributary.contract.engines.binlog import BinlogSource


class MySqlSource(BinlogSource):
    """The databases of a MySQL server."""

    engine: Literal["mysql"]
