"""What callers may do: one function an operation, with models of its arguments and its answer."""
