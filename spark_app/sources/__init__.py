"""The sources of events."""
