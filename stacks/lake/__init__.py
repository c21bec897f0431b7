"""The lake stack: the buckets, the Glue catalog and Athena."""
