"""Stores what texts name and state, when they are written and in the background."""
