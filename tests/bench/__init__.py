"""Tests of what the benchmarks calculate. They measure no time."""
