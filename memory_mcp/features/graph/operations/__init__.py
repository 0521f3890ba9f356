"""The operations of the graph: its tools and routes."""
