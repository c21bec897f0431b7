"""Checks before the templates are built, and accepted security findings with their reasons."""
