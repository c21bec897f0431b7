"""Board files: their form, and the queries that several tiles share."""
