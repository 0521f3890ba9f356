"""Memory MCP: the long-term memory that several characters share one server for, and never share with each other."""

__version__ = "0.1.0"
