"""Whether this is `make soak`, which takes as long as it is given."""

from __future__ import annotations

from hypothesis import settings

SOAKS = settings.get_current_profile_name() == "soak"
