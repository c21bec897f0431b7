"""Database engines: one folder each, behind one interface and one registry."""
