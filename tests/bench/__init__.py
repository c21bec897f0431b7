"""Tests of the benchmarks: of what they calculate, not of how long anything takes."""
