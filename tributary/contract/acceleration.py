"""The policy for the Spark app's Java classes: use them if possible, always, or never."""

from __future__ import annotations

from typing import Literal

Acceleration = Literal["auto", "off", "required"]
