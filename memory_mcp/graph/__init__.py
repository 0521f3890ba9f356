"""The graph: entities found in texts, the relations between them, and what they answer.

`extract` finds entities in a text, `update` writes them, `query` reads them, `analytics` computes measures of a whole graph.
"""
