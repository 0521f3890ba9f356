"""Entities: rows, names, merges, types and vectors, and how callers find them."""
