"""The names that bots import: `from memory_mcp.chat import Conversation`. The feature that holds conversations brings them, in its `library.py`."""

from typing import Any

from memory_mcp.feature import modules


def __getattr__(name: str) -> Any:
    for library in modules("library"):
        if name in library.__all__:
            return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
