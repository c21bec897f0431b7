"""The job that compares a deployed lake with its databases."""
