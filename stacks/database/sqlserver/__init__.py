"""SQL Server on AWS."""
