"""PostgreSQL: its connector, its preparation and preflight check, and how its rows are read."""
