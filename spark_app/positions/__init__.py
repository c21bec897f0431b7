"""Positions: the place of a change in the log of its source. Each engine has its own module."""
