"""The database stack: the databases of all sources, ready for replication; one module or folder an engine."""
