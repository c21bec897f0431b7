"""Wire forms: turn the bytes of an event into a change."""
