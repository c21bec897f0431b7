"""The entries that each database engine has in the lake file: one module an engine, and their registry."""
