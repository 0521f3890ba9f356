"""The graph of one persona: entities and their names, where they are mentioned, what relates them. Part of its database."""
