"""The place through which an erasure on AWS gets its keys, and how long S3 keeps what was removed.

Keys are personal data, so no argument of a job holds them. The command puts them into an object in the
quarantine bucket, the Spark app writes its report into the same folder, and the command removes both.
"""

from __future__ import annotations

ERASURES_FOLDER = "_erasures"
"""The folder in the quarantine bucket that has the objects. No source's name begins with an underscore."""

KEYS_FILE = "keys.json"
REPORT_FILE = "report.jsonl"

DAYS_OF_UNDOING = 7
"""How many days the lake's buckets keep an overwritten or deleted object as a noncurrent version."""

DAYS_OF_LEFTOVERS = 1
"""After how many days the quarantine bucket expires an object of a killed command, and then its version.

S3 rounds both up to midnight, UTC. So the last version is removed after 2 to 4 days.
"""
