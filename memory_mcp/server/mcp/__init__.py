"""MCP: tools made from the operations, resources, instructions and prompts."""
