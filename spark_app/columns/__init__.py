"""The columns of a silver table and their types."""
