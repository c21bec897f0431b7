"""The lake file entries of each database engine: one module for each engine, and their registry."""
