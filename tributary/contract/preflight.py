"""The result of the preflight: whether a release of EMR runs the Spark app, found out by a job on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from tributary.contract.acceleration import STEPS_FOLDER

State = Literal["passed", "failed"]


@dataclass(frozen=True)
class Check:
    """One thing that was tried.

    detail       what was found, or the error
    is_required  whether the app cannot run without it. Without the others, it runs in plain PySpark.
    """

    name: str
    state: State
    detail: str
    is_required: bool


@dataclass(frozen=True)
class Preflight:
    """The checks of one run. `release` is EMR's, `spark` the version of Spark, `at` in ISO 8601."""

    release: str
    at: str
    spark: str
    checks: tuple[Check, ...]

    @property
    def is_passed(self) -> bool:
        """Tell whether the app runs on the release, at least in plain PySpark."""
        return all(check.state == "passed" for check in self.checks if check.is_required)

    @property
    def is_accelerated(self) -> bool:
        """Tell whether the app can use its Java on the release."""
        return all(check.state == "passed" for check in self.checks)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> Preflight | None:
        """Parse the file. Return None for a text of another version: the preflight then runs again."""
        try:
            found = json.loads(text)
            return Preflight(**{**found, "checks": tuple(Check(**check) for check in found["checks"])})
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


def preflight_file(release: str) -> str:
    """Return the path of the result in the bucket of quarantined events."""
    return f"{STEPS_FOLDER}/preflight-{release}.json"


def tried(name: str, run: Callable[[], str], *, is_required: bool = True) -> Check:
    """Run a check, which returns what it found. Any error is a failed check."""
    try:
        return Check(name, "passed", run(), is_required)
    except Exception as error:  # noqa: BLE001  The preflight shows every failure, also those nobody foresaw.
        lines = str(error).strip().splitlines() or [""]
        of_java = next((line for line in lines if line.startswith(": ")), lines[0])
        return Check(
            name, "failed", f"{type(error).__name__}: {of_java.removeprefix(': ')}"[:500], is_required
        )
