"""The commands of `tributary`, one module for those that belong together."""
