"""MariaDB in the lake file."""

from __future__ import annotations

from typing import Literal

from tributary.contract.engines.binlog import BinlogSource


class MariaDbSource(BinlogSource):
    """The databases of a MariaDB server."""

    engine: Literal["mariadb"]
