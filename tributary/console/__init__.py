"""The web console: pages that show a running lake, and its metrics for Prometheus."""
