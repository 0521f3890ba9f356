"""Data directories of older servers: their files are moved to their places, and their tables taken over."""
