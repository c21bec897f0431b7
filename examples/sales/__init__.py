"""Derived tables: a stationer whose purchases are in Kafka, with totals, windows of time and joins."""
