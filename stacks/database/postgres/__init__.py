"""PostgreSQL on AWS: Aurora clusters, or existing servers, ready for replication and watched."""
