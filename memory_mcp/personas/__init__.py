"""Personas: their names, directories, open handles (`registry`), and operations on whole personas (`lifecycle`)."""
