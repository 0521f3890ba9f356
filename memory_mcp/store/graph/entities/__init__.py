"""Entities: their rows, their names, who is one with whom, how a caller finds them."""
