"""Reads the graph: neighbors, paths, and what a search takes from it."""
