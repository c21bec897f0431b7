"""Wire forms: from the bytes of an event to a change."""
