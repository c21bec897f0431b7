"""The ledger: how far a table has read, kept in the table's own commits."""
