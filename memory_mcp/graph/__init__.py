"""Entities and relations in memories: `extract` finds them in a text, `update` stores them when it is written and in the background, `query` is what
a search takes from them. `features/graph/` shows, measures and changes them.
"""
