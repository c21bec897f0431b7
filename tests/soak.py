"""The soak tests' switch: `make soak` sets it, and its tests may take as long as they are given."""

from __future__ import annotations

from hypothesis import settings

SOAKS = settings.get_current_profile_name() == "soak"
