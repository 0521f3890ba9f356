"""Light rules for Japanese: who is called さん, what is called a station, a company, a festival, a project, a title in 『』.

They name what the text itself gives away and leave the rest: a katakana word alone may be a friend or a fruit.
"""

from collections.abc import Iterator

from memory_mcp.text.entities.mention import Mention
from memory_mcp.text.entities.people import kin, people
from memory_mcp.text.entities.places import places, things


def found(text: str) -> Iterator[Mention]:
    """What the rules name in a text that has Japanese in it; they may overlap."""
    yield from people(text)
    yield from kin(text)
    yield from places(text)
    yield from things(text)
