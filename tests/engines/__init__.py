"""Tests of the engine interface: a second engine that only tests register, and the rule about vocabulary."""
