"""The mark of a soak run (`make soak`), whose tests take as long as they are given."""

from __future__ import annotations

from hypothesis import settings

SOAKS = settings.get_current_profile_name() == "soak"
