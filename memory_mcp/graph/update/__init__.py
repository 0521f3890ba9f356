"""Writes the graph: from texts, from stated relations, from edits by hand, and in the background."""
