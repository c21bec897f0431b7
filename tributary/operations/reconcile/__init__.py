"""The proof that the lake equals the database, row by row."""
