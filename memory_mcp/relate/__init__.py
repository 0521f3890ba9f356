"""One relation between two memories: the newer one says that the earlier one no longer holds."""
