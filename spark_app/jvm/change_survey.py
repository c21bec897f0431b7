"""Counts changes while a query computes them: the Java class ChangeSurvey.

What it replaces is a second query over the same changes, which aggregates them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_app.jvm.java_classes import java_class
from spark_app.steps.found_changes import Applied, Found, FoundSnapshot, FoundTruncate


@dataclass(frozen=True)
class JavaChangeCounter:
    """Counts the changes of one batch (`spark_app.steps.found_changes.ChangeCounter`)."""

    _java: Any = field(repr=False)

    @staticmethod
    def beside(applied: Mapping[int, Applied]) -> JavaChangeCounter:
        """Make a counter that compares changes with what was applied, by partition."""
        spark = SparkSession.active()
        text = json.dumps(
            {
                partition: {"position": b64encode(at.position).decode(), "source_us": at.source_us}
                for partition, at in applied.items()
            }
        )
        return JavaChangeCounter(java_class(spark, "ChangeSurvey").of(spark._jsparkSession, text))

    def counted(self, changes: DataFrame) -> DataFrame:
        return DataFrame(self._java.counted(changes._jdf), changes.sparkSession)

    def found(self, _held: DataFrame, /) -> Sequence[Found]:
        return [_found(task) for task in json.loads(self._java.found())]

    def found_in(self, changes: DataFrame) -> Sequence[Found]:
        counted = self.counted(changes)
        counted.write.format("noop").mode("overwrite").save()
        return self.found(counted)


def _found(task: Mapping[str, Any]) -> Found:
    read = {
        "first_log_position": _bytes(task["first_log_position"]),
        "first_position": _bytes(task["first_position"]),
        "snapshots": tuple(
            FoundSnapshot(**{**each, "log_position": b64decode(each["log_position"])})
            for each in task["snapshots"]
        ),
        "truncates": tuple(
            FoundTruncate(
                **{
                    **each,
                    "position": b64decode(each["position"]),
                    "log_position": b64decode(each["log_position"]),
                }
            )
            for each in task["truncates"]
        ),
        "highest_positions": {
            int(offset): b64decode(position) for offset, position in task["highest_positions"].items()
        },
        "latest_times": {int(offset): time_us for offset, time_us in task["latest_times"].items()},
        "times": tuple(task["times"]),
    }
    return Found(**{**task, **read})


def _bytes(base64: str | None) -> bytes | None:
    return None if base64 is None else b64decode(base64)
