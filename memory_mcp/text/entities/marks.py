"""What a writer marks in the text itself: [[田中]], [[田中|Person]], [[田中太郎|田中さん]], as wikis and note programs do."""

import re
from collections.abc import Collection, Iterator

from memory_mcp.text.entities.mention import Mention

NAME_LIMIT = 100
_MARK = re.compile(r"\[\[([^\[\]|\n]{1,300})(?:\|([^\[\]|\n]{1,300}))?\]\]")


def marked(text: str, types: Collection[str]) -> Iterator[Mention]:
    """The entities that the text marks. After the bar stands a type where there is one of that name, else another name."""
    by_folded = {known.casefold(): known for known in types}
    for found in _MARK.finditer(text):
        name = _name(found[1])
        if not 0 < len(name) <= NAME_LIMIT:
            continue
        after = (found[2] or "").strip()
        type_ = by_folded.get(after.casefold())
        aliases = (after,) if after and type_ is None and after != name and len(after) <= NAME_LIMIT else ()
        yield Mention(name, type_, found.start(), found.end(), "marked", aliases=aliases)


def _name(inside: str) -> str:
    """A link to a heading or a block of a note names the note."""
    return re.split(r"[#^]", inside, maxsplit=1)[0].strip()
