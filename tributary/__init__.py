"""Tributary: lake tables that equal the tables of operational databases."""
