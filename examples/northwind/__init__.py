"""The outbox pattern on PostgreSQL: a wholesaler whose triggers write an event for each change."""
