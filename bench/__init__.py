"""The benchmarks, the baselines that they compare with, and the recorded results."""
