"""One table: from a range of its topic to one commit."""
