"""MySQL and MariaDB on AWS."""
