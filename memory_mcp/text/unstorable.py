"""What no stored text may hold."""

import re

from memory_mcp.errors import InvalidInput

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str, name: str) -> str:
    """`text` itself, or InvalidInput when it holds a NUL or half of a surrogate pair (neither can be stored as text)."""
    bad = _UNSTORABLE.search(text)
    if bad is None:
        return text
    what = "a NUL character" if bad.group() == "\x00" else f"half of a surrogate pair (U+{ord(bad.group()):04X})"
    raise InvalidInput(
        f"{name} holds {what} at character {bad.start() + 1}",
        "it can't be stored or searched as text",
        "Remove it and send the call again",
    )
