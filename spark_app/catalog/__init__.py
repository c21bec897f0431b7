"""Keep AWS Glue's entries of the silver tables up to date."""
