"""Serve the lake's tables to programs that speak MySQL's protocol."""
