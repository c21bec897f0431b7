"""A run: the loop over all tables, and its reports."""
