"""The keys of config.json about the gateway."""

from memory_mcp.config.settings import Gateway

__all__ = ["Gateway"]
