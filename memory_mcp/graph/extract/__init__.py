"""Finds the entities that a text names: annotated by the writer, known already, or recognized by rules; in this order of trust."""
