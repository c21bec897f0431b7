"""What the app checks before it builds, and which findings are accepted and why."""
