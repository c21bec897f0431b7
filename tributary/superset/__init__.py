"""Apache Superset on this machine, with the lake as its database and the boards as its dashboards."""
