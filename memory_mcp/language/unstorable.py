"""Characters that can't be stored as text: NUL and unpaired surrogates."""

import re

from memory_mcp.errors import InvalidInput

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str, name: str) -> str:
    """Returns `text` unchanged.

    Raises:
        InvalidInput: it contains a character that can't be stored; the message names the field `name` and the offset.
    """
    match = UNSTORABLE.search(text)
    if match is None:
        return text
    character = "a NUL character" if match.group() == "\x00" else f"half of a surrogate pair (U+{ord(match.group()):04X})"
    raise InvalidInput(
        f"{name} holds {character} at character {match.start() + 1}",
        "it can't be stored or searched as text",
        "Remove it and send the call again",
    )
