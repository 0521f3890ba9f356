"""What a search takes from the graph."""
