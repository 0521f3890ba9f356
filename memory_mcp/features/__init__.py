"""Each folder here is a feature, and can be deleted: see README.md. Nothing imports it by name."""
