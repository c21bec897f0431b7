"""The demo's database: TICKIT, the sample schema of a ticket exchange, and a workload on it."""
