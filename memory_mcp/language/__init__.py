"""What writing and reading both do to text."""
