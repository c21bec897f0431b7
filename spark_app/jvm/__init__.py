"""Java accelerators, each behind one Python bridge."""
