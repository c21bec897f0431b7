"""The policy for the Spark app's Java classes, and which steps the app has chosen."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

Acceleration = Literal["auto", "off", "required"]

STEPS_FOLDER = "_steps"
"""The folder in the bucket of quarantined events in which the app keeps what it knows of its steps.

No table has this name, because the names of a source's tables begin with a letter."""

CHOSEN_STEPS_FILE = f"{STEPS_FOLDER}/chosen.json"
"""The steps that the last start of the app has chosen."""


@dataclass(frozen=True)
class ChosenSteps:
    """The steps that a run of the app uses.

    steps   "plain" or "accelerated"
    reason  why the app uses these steps
    wanted  what the lake file asks for
    at      when the run began, in ISO 8601
    """

    steps: Literal["plain", "accelerated"]
    reason: str
    wanted: Acceleration
    at: str

    @property
    def lacks_acceleration(self) -> bool:
        """Tell whether the lake file allows Java, and the run cannot use it."""
        return self.steps == "plain" and self.wanted != "off"

    @property
    def warning(self) -> str | None:
        """A sentence for a person if the run lacks Java although the lake file allows it, else None."""
        if not self.lacks_acceleration:
            return None
        return f"The Spark app runs in plain PySpark since {self.at}: {self.reason}"

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> ChosenSteps | None:
        """Parse the file. Return None for a text of another version, because no run depends on it."""
        try:
            return ChosenSteps(**json.loads(text))
        except (TypeError, ValueError):
            return None
