"""The files of a persona and of the data directory that aren't databases, and how files are written and encrypted."""
