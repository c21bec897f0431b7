"""A deployed lake, as a client of AWS sees it."""
