"""The largest values that Avro's reader may take from one event."""

from __future__ import annotations

from collections.abc import Mapping

_BYTES, _ITEMS = 128 << 20, 16 << 20

AVRO_LIMITS: Mapping[str, str] = {
    "org.apache.avro.limits.bytes.maxLength": str(_BYTES),
    "org.apache.avro.limits.string.maxLength": str(_BYTES),
    "org.apache.avro.limits.collectionItems.maxLength": str(_ITEMS),
}
"""Java properties of every JVM that reads events (org.apache.avro.SystemLimitException).

By default, a damaged length makes the reader ask for two gigabytes, and the whole JVM ends."""
