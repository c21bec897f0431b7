"""The engines whose positions the app reads."""

from __future__ import annotations

from collections.abc import Mapping

from spark_app.positions.postgres import PostgresLog
from spark_app.positions.source_log import SourceLog

SOURCE_LOGS: Mapping[str, SourceLog] = {"postgres": PostgresLog()}
"""The name of an engine in the lake file, and how its log tells positions."""
