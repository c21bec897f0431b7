"""The demo's database: TICKIT, the sample schema of a ticket exchange, and the trade on it."""
