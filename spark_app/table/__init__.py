"""One table: turn a range of its topic into one commit."""
