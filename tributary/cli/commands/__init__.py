"""The commands of `tributary`, with related commands in one module."""
