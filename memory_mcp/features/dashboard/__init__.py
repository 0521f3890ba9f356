"""The dashboard at /ui: pages in a browser, rendered on the server, that call the same operations as tools and routes."""
