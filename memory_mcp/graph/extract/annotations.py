"""Annotations that a writer puts into the text: [[田中]], [[田中|Person]], [[田中太郎|田中さん]], as in wikis and note programs."""

import re
from collections.abc import Collection, Iterator

from memory_mcp.language.entity_types import type_of_word
from memory_mcp.language.mention import Mention
from memory_mcp.language.names import NAME_LIMIT, is_invisible, is_polite

# Without it a text has no annotations, and no types need be read for it.
ANNOTATION_START = "[["
# [[健太]]さん is a person, [[みどり産業]]さん is not; 様々, 君主 and 氏名 are words of their own.
_POLITE_AFTER = re.compile("(?:さん|さま|様(?![々子式])|くん|君(?!主)|ちゃん|氏(?!名)|先生|先輩)")
_NO_PERSON = re.compile("(?:社|店|屋|部|課|局|会|所|院|園|校|大学|産業|工業|商事|銀行|組合|チーム|グループ)$")
# [[健太]]は友達だ shows that he is a person; [[健太]]は友達と来た and [[ダイズ]]は友達の猫 don't.
_RELATIONSHIP = (
    "友達|友だち|ともだち|友人|親友|旧友|幼なじみ|幼馴染み?|知り合い|知人|同僚|上司|部下|同級生|クラスメイト|ルームメイト|後輩|恋人|彼氏|彼女|婚約者|夫|妻|旦那|嫁|"
    "息子|娘|兄|姉|弟|妹|父|母|父親|母親|祖父|祖母|叔父|叔母|いとこ|従兄弟|従姉妹|甥|姪|隣人|大家|担任|主治医"
)
_OF = r"(?:[^はがをにも、。\s]{1,12}の)?"
_RELATIONSHIP_AFTER = re.compile(
    rf"(?:は|も|が){_OF}(?:{_RELATIONSHIP})(?:さん)?(?=[。．、，！？!?.,）)」』\s]|$|だ(?!け)|です|でし|であ|で[、，]|なの|なん|らし|じゃ)"
    f"|という{_OF}(?:{_RELATIONSHIP})|っていう{_OF}(?:{_RELATIONSHIP})"
    r"|\s(?:is|was)\s(?:my|our|his|her|their|an?)\s(?:[a-z]+\s)?(?:friend|colleague|co-?worker|boss|neighbou?r|roommate|classmate|cousin|aunt|uncle|"
    r"(?:grand)?(?:mother|father|son|daughter)|sister|brother|mom|dad|wife|husband|girlfriend|boyfriend)(?=[.,;!?)]|$|\s(?:and|of|from|who|since|at|in)\b)"
)
_ANNOTATION = re.compile(r"\[\[([^\[\]|\n]{1,300})(?:\|([^\[\]|\n]{1,300}))?\]\]")


def annotated(text: str, types: Collection[str]) -> Iterator[Mention]:
    """The annotated entities. What follows the bar is a type if one has that name, else another name of the entity."""
    for match in _ANNOTATION.finditer(text):
        name = _note_name(match[1])
        if is_invisible(name) or len(name) > NAME_LIMIT:
            continue
        after = (match[2] or "").strip()
        type_ = type_of_word(after, types) if after else None
        aliases = (after,) if not is_invisible(after) and type_ is None and after != name and len(after) <= NAME_LIMIT else ()
        person = _POLITE_AFTER.match(text, match.end()) or _RELATIONSHIP_AFTER.match(text, match.end())
        polite = any(map(is_polite, (name, *aliases)))
        likely = "Person" if (person or polite) and not _NO_PERSON.search(name) else None
        yield Mention(name, type_, match.start(), match.end(), "marked", aliases=aliases, likely=likely)


def _note_name(inside: str) -> str:
    """A link to a heading or a block of a note names the note."""
    return re.split(r"[#^]", inside, maxsplit=1)[0].strip()
