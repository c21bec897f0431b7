"""The database stack: Aurora PostgreSQL, or an existing database, ready for replication."""
