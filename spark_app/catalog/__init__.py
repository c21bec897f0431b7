"""Silver tables in AWS Glue."""
