"""Packs: memories of a pool as a signed file that others install."""
