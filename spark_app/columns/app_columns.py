"""The names of the app's own columns that decide how a table is stored.

A module of their own, so that the room that stores tables needs to know nothing of what is in them.
"""

from __future__ import annotations

RECORD_KEY = "_key"
"""The record key, a text."""

OPERATION = "_op"
"""What the last change of the row was."""

ORDERING = "_seq"
"""The order of a row's versions: the one with the highest number stays."""

DELETE_MARKER = "d"
"""The `_op` of a row that deletes its key, where deletes are hard."""
