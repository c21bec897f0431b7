"""Whether the Spark app may and must use its Java classes."""

from __future__ import annotations

from typing import Literal

Acceleration = Literal["auto", "off", "required"]
