"""The lake as Python reads it."""
