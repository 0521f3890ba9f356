"""Measures of a whole graph, computed in worker processes and cached until the graph changes."""
