"""Engines behind their interface: a second one that only tests know, and the law that keeps words apart."""
