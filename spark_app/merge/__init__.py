"""Merge: turn the changes of a batch into one row per key."""
