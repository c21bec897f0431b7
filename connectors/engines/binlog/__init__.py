"""What MySQL and MariaDB share: the binary log, its positions, the catalog, and the SQL."""
