"""A deployed lake: its stacks' outputs, connectors, jobs and metrics."""
