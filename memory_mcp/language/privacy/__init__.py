"""Finds private data in texts (`secrets`, `addresses`, `numbers`) and replaces it with placeholders (`redaction`)."""
