"""Calls to a running server: plain HTTP and MCP tools (`connection`), and a stdio face for hosts that speak nothing else (`bridge`)."""
