"""The graph of people and things, to look at, to measure and to change.

That memories name entities, and that a search follows them, is not of this feature: `memory_mcp/graph/` finds names and relations in texts, and
`store/graph/` keeps them.
"""
