"""MySQL on AWS: Aurora clusters, or existing servers, ready for Debezium and watched."""
