"""Store which steps the app has chosen, and where the self-test has passed, beside the quarantined events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from spark_app.hudi.table_files import TableFiles
from tributary.contract.acceleration import CHOSEN_STEPS_FILE, STEPS_FOLDER, ChosenSteps


@dataclass(frozen=True)
class StepsFiles:
    """Files in the folder `_steps` of the bucket of quarantined events.

    A pass is a file with the fingerprint of its class path in its name. If somebody removes the
    file, the self-test runs once more."""

    spark: SparkSession
    bucket: str

    def has(self, fingerprint: str, /) -> bool:
        return self._files.exists(_pass(fingerprint))

    def add(self, fingerprint: str, /) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._files.write(_pass(fingerprint), json.dumps({"at": at, "spark": self.spark.version}).encode())

    def write(self, chosen: ChosenSteps) -> None:
        self._files.write(CHOSEN_STEPS_FILE, chosen.to_json().encode())

    @property
    def _files(self) -> TableFiles:
        return TableFiles(self.spark, self.bucket)


def _pass(fingerprint: str) -> str:
    return f"{STEPS_FOLDER}/passed-{fingerprint}.json"
