"""A first look at a database, and the lake file that is written from it."""
