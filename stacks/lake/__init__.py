"""The lake stack: buckets, the Glue catalog and Athena."""
