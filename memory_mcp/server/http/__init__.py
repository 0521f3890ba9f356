"""The HTTP API besides MCP: its routes and its OpenAPI document, both made from the operations."""
