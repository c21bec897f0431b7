"""Benchmarks: what is measured, against what, and the recorded results."""
