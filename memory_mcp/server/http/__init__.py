"""The HTTP API beside MCP: its routes and its OpenAPI document, both made from the operations."""
