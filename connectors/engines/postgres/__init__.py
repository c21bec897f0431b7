"""PostgreSQL: its connector, its preparation and its preflight check."""
