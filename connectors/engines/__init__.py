"""Database engines, one folder each."""
