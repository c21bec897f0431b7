"""Derived tables: bring the results of queries over tables and topics up to date."""
