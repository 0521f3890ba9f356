"""The read path: from a question to hits, and the layered context a conversation starts with."""
