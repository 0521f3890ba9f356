"""What a writer marks in the text itself: [[田中]], [[田中|Person]], [[田中太郎|田中さん]], as wikis and note programs do."""

import re
from collections.abc import Collection, Iterator

from memory_mcp.text.entities.folding import bare, fold, is_invisible
from memory_mcp.text.entities.mention import Mention
from memory_mcp.text.entities.type_words import type_called

NAME_LIMIT = 100
# [[健太]]さん is somebody, [[みどり産業]]さん is not; 様々, 君主 and 氏名 are words of their own.
_POLITE_AFTER = re.compile("(?:さん|さま|様(?![々子式])|くん|君(?!主)|ちゃん|氏(?!名)|先生|先輩)")
_NOBODY = re.compile("(?:社|店|屋|部|課|局|会|所|院|園|校|大学|産業|工業|商事|銀行|組合|チーム|グループ)$")
_MARK = re.compile(r"\[\[([^\[\]|\n]{1,300})(?:\|([^\[\]|\n]{1,300}))?\]\]")


def marked(text: str, types: Collection[str]) -> Iterator[Mention]:
    """The entities that the text marks. After the bar stands a type where one is called so, else another name."""
    for found in _MARK.finditer(text):
        name = _name(found[1])
        if is_invisible(name) or len(name) > NAME_LIMIT:
            continue
        after = (found[2] or "").strip()
        type_ = type_called(after, types) if after else None
        aliases = (after,) if not is_invisible(after) and type_ is None and after != name and len(after) <= NAME_LIMIT else ()
        polite = _POLITE_AFTER.match(text, found.end()) or any(bare(one) != fold(one) for one in (name, *aliases))
        likely = "Person" if polite and not _NOBODY.search(name) else None
        yield Mention(name, type_, found.start(), found.end(), "marked", aliases=aliases, likely=likely)


def _name(inside: str) -> str:
    """A link to a heading or a block of a note names the note."""
    return re.split(r"[#^]", inside, maxsplit=1)[0].strip()
