"""SQL Server on AWS: RDS instances, or existing servers, ready for Debezium and watched."""
