"""What Debezium puts in place of a large value that an update does not change, if the log does not have it.

Source: `unavailable.value.placeholder`, which stays at its default, and how Debezium's converters write it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid

PLACEHOLDER = "__debezium_unavailable_value"
PLACEHOLDER_BASE64 = base64.b64encode(PLACEHOLDER.encode()).decode()
PLACEHOLDER_UUID = str(uuid.UUID(bytes=hashlib.md5(PLACEHOLDER.encode()).digest(), version=3))
PLACEHOLDER_JSON = json.dumps({PLACEHOLDER: PLACEHOLDER}, separators=(",", ":"))

_FORMS = (PLACEHOLDER, PLACEHOLDER_BASE64, PLACEHOLDER_UUID, PLACEHOLDER_JSON)


def is_unchanged(value: object) -> bool:
    """Tell whether a value of an event's JSON stands for one that was not changed: also of an array."""
    if isinstance(value, list):
        return len(value) == 1 and value[0] in _FORMS
    return isinstance(value, str) and value in _FORMS
