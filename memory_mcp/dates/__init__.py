"""Dates in words: finds date expressions in a text and says which days they mean."""
