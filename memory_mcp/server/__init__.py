"""The server's edge: HTTP and MCP. The only part that is async, and the only one that turns a request into a persona."""
