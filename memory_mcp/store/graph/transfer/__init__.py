"""The graph on its way out of a persona and into one: exports, imports, another persona merged in."""
