"""Keeps the vector indexes equal to SQLite. No threads: `jobs` decides when."""
