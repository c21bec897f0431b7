"""`tributary`, the command a person types."""
