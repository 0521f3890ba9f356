"""What exports of chats have in common: files of conversations, read one conversation after the other."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.json_items import items
from memory_mcp.transfer.rows import Found
from memory_mcp.transfer.sources import Source, blocks

CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")


def each(source: Source, read: Callable[[Any, str], Iterator[Found]]) -> Iterator[Found]:
    """What `read` finds in each conversation, which it is told with its place; a file that can't be read is refused by its name."""
    for name in source.names():
        if len(source.names()) > 1 and not CONVERSATIONS.fullmatch(name):
            continue
        try:
            for place, conversation in enumerate(items(blocks(source, name), name), start=1):
                yield from read(conversation, f"{name}, conversation {place}")
        except InvalidInput as error:
            yield Found(name, refused=str(error))
