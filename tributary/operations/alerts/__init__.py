"""Alerts about a lake on this machine: the rules, what was sent already, and the ways to send."""
