"""What is near an entity, how two are connected, and the graph as a picture."""
