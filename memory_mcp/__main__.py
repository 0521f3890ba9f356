"""`python -m memory_mcp`: the same as the command `memory-mcp`."""

from memory_mcp.cli import main

main()
