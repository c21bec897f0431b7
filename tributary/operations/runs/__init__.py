"""Runs of the Spark app on this machine: their start, their progress, and an ingest that is kept running."""
