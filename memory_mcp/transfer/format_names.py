"""The names of what can be imported, apart from what reads it: a command that only names them needs none of that."""

from enum import StrEnum


class Format(StrEnum):
    """The names that `--format` takes."""

    AUTO = "auto"
    JSON_LINES = "jsonl"
    TEXT = "text"
    OBSIDIAN = "obsidian"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    SLACK = "slack"
    MEM0 = "mem0"
    MCP_MEMORY = "mcp-memory"
    DATABASE = "database"
