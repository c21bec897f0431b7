"""Tests of reading the lake from Python."""
