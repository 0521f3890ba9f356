"""The formats that an import reads, each read by the module of its name. This module only names them: `--help` needs no reader."""

from enum import StrEnum

ZIP_SUFFIX = ".zip"


class Format(StrEnum):
    """The values of `--format`."""

    AUTO = "auto"
    JSON_LINES = "jsonl"
    TEXT = "text"
    CSV = "csv"
    OBSIDIAN = "obsidian"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    SLACK = "slack"
    MEM0 = "mem0"
    MCP_MEMORY = "mcp-memory"
    MEMORY_SERVICE = "mcp-memory-service"
    DATABASE = "database"
    TRANSCRIPT = "transcript"
    SILLYTAVERN = "sillytavern"
    CHARACTER = "character"
    LOREBOOK = "lorebook"
    CHARACTER_CHAT = "character-chat"
    PLAYBOOK = "playbook"
    SKILLBOOK = "skillbook"
    CLAUDE_MEM = "claude-mem"
