"""Keeps the vector indexes equal to SQLite. No threads: `jobs` says when."""
