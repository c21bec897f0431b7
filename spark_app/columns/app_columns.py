"""The names of the app's own columns that decide how a table is stored.

They have their own module so that the code that stores tables does not depend on what tables contain."""

from __future__ import annotations

RECORD_KEY = "_key"
"""The record key, as text."""

OPERATION = "_op"
"""The operation of the row's last change."""

ORDERING = "_seq"
"""The order of a row's versions: the version with the highest number stays."""

DELETE_MARKER = "d"
"""The `_op` of a row that deletes its key, if deletes are hard."""
