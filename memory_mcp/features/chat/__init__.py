"""Conversations with chat models of any vendor, which use this server's memory and other MCP servers; bots import `memory_mcp.chat`."""
