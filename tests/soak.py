"""The mark of a soak run (`make soak`), whose tests take as long as they are given."""

from __future__ import annotations

import sys

from hypothesis import settings

# A conftest.py of a folder that is named on the command line is read before hypothesis loads the profile.
SOAKS = "--hypothesis-profile=soak" in sys.argv or settings.get_current_profile_name() == "soak"
