"""Dates in words: finds date expressions in a text and resolves them to days."""
