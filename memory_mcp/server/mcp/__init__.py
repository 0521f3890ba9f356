"""MCP: tools made from the operations, resources and prompts."""
