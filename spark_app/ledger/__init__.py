"""The ledger: how far a table has read, kept in its own commits."""
