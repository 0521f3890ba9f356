"""The doors to the models: what search and the index ask of them, and whether they are there."""
