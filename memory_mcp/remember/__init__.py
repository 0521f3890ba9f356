"""The write path: from a draft to a stored memory, and what can be done to it later."""
