"""SQL Server: change data capture, its change tables and positions, the catalog, and the SQL."""
