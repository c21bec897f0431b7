"""Positions: where in the log of its source a change stands, one module an engine."""
