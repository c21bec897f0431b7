"""The `tributary` command."""
