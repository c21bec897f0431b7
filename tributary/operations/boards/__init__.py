"""Boards: files of SQL and kinds of charts, beside the lake file."""
