"""Merge: from the changes of a batch to one row a key."""
