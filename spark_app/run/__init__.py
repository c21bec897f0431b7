"""The run: the loop over all tables, and what it reports."""
