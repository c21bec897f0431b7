"""Tests of a client's access to a deployed lake."""
