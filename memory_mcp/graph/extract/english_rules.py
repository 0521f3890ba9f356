"""Rules for names in English: capitalized words inside a sentence, the words around them, @names."""

import re
from collections.abc import Callable, Iterator, Set
from functools import cache, partial

from memory_mcp.language.mention import Mention

_LATIN = re.compile("[A-Za-z@]")
_WORD = r"[A-Z][A-Za-z'’]*[A-Za-z]|[A-Z]{2,}|[A-Z]"
# A name ends where a date begins: in Trip October 17 and Trip 17 October.
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
_NO_DATE = rf"(?!{_MONTH},?\s{{1,2}}(?:the\s)?[0-9]|[0-9]{{1,2}}\s(?:of\s)?{_MONTH})"
_FURTHER = rf"(?:\s+(?:of|the|de|van|von|and the)\s+|[ -]){_NO_DATE}(?:{_WORD}|[0-9]+(?!\.[0-9]))(?![A-Za-z0-9_@])"
_RUN = re.compile(rf"(?<![A-Za-z0-9_@#/.|-]){_NO_DATE}(?:{_WORD})(?:\.js)?(?![A-Za-z0-9_@])(?:{_FURTHER})*")
_AT = re.compile(
    r"(?<![\w.\]])@(?P<name>(?=[\w-]{2})[A-Za-z0-9_]{1,30}(?:-[A-Za-z0-9_]{1,30}){0,4}|[\u3041-\u30fa\u30fc\u4e00-\u9fff]{2,15})"
)
_TITLE = re.compile(r"^(?:Mr|Mrs|Ms|Miss|Dr|Prof|Professor|Doctor|Uncle|Aunt|Grandma|Grandpa|Coach|Captain)\.?\s+")
_TITLED = re.compile(
    rf"\b(?:Mr|Mrs|Ms|Miss|Dr|Prof|Professor|Doctor|Uncle|Aunt|Coach|Captain)\.? (?P<name>(?:{_WORD})(?: {_NO_DATE}(?:{_WORD}))?)"
)
# Capitalized words that are no names by themselves.
_COMMON = frozenset(
    "i i'm i've i'll i'd the a an this that these those my your his her its our their we they he she it you who what when where why how which there here "
    "yes no not and but or so if then also just maybe please thanks thank hello hi hey ok okay sorry well oh wow today yesterday tomorrow tonight now later "
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december "
    "in on at to from for with by as of after before during since until while because although though every each some any all both most many much "
    "is are was were be been do does did don't didn't have has had can could will would should may might must let let's last next first second one two three "
    "am pm mr mrs ms dr mom dad mum mother father grandma grandpa christmas english japanese french german spanish chinese korean american british "
    "ate went met see saw visit visited got took made bought read watched played started finished moved planted booked called asked told said loves likes wants never always "
    "usually sometimes remember remind note todo dear nobody everyone someone something nothing once twice new old good great happy our finally still only "
    "about around near over under between into out up down off back again same other another tv usa uk pc id url api pdf faq cpu gpu ai llm bbq atm usb dvd cd sns ng gw sms qr csv diy vip dj mc bgm npc hp mp ssd led ac dm pr cm".split()
)
_PLACE_END = re.compile(
    r"(?:Street|St|Avenue|Park|Station|City|Lake|Mountain|River|Airport|Museum|Hospital|Beach|Island|Bridge|Square|Hotel|Cafe|Café|Restaurant|Library|Garden|Gardens|Market|Temple|Castle)$"
)
_PLACE_START = re.compile(r"^(?:Mount|Mt|Lake|Cape|Port|San|Saint|New|Los|Las)\b")
_ORGANIZATION_END = re.compile(
    r"(?:Inc|Corp|Corporation|Ltd|LLC|University|College|School|Bank|Company|Club|Institute|Labs?|Foundation|Association|Team|Band|Orchestra)$"
)
_EVENT_END = re.compile(r"(?:Festival|Marathon|Conference|Fair|Cup|Games|Olympics|Day|Party|Concert|Summit|Workshop|Expo|Meetup)$")
_TASK_END = re.compile(r"(?:Project|Plan|Task)$|^Project\b")
_PLACE_BEFORE = re.compile(
    r"\b(?:in|to|from|near|visit|visited|visiting|around|through|across|toward|towards|outside|leaving|left for|moved to|trip to|lives in)\s+$",
    re.IGNORECASE,
)
_AT_WORK_BEFORE = re.compile(
    r"\b(?:works? (?:at|for)|job at|joined|hired by|employed (?:at|by)|interview (?:at|with)|intern(?:ed|ship)? (?:at|with))\s+$",
    re.IGNORECASE,
)
_PERSON_BEFORE = re.compile(
    r"\b(?:with|met|called|named|friend|brother|sister|son|daughter|wife|husband|boss|colleague|cousin|uncle|aunt|neighbou?r|teacher|nephew|niece|roommate|and|told|asked|thanks?|from|by|call|ask|tell|meet|(?-i:see))\s+$",
    re.IGNORECASE,
)
_PERSON_AFTER = re.compile(
    r"^(?:'s\b|’s\b)?\s*(?:said|says|told|tells|likes?|loves?|hates?|works?|worked|lives?|lived|called|asked|wants?|wanted|moved|plays?|played|and I|gave|bought|is (?:a|an|my|afraid|allergic|vegan|vegetarian|coming|visiting|getting)|was (?:born|sick|late)|will|helped|promised|cooked|recommended|thinks?|turns|has|had|got|teaches|taught|studies|studied|hates|birthday|wedding|mother|father|sister|brother|wife|husband|son|daughter)\b"
)
# Characters around a name that are examined: the whole text for each name would take seconds for a long one.
_REACH = 60
_SPACED, _LETTER = re.compile(r"\S+"), re.compile(r"\w")
_LONG = 600
_SMALL_WORD = re.compile(r"(?<![A-Za-z0-9_@./'’-])[a-z]+(?![A-Za-z0-9_])")
_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?:\n。！？「『（(\"“•*-])\s*[\"“'(]*$")
_BY_NAME = (
    (_PLACE_END, "Location"),
    (_ORGANIZATION_END, "Organization"),
    (_EVENT_END, "Event"),
    (_TASK_END, "Task"),
    (_PLACE_START, "Location"),
)
_BY_WORDS_BEFORE = ((_AT_WORK_BEFORE, "Organization"), (_PLACE_BEFORE, "Location"), (_PERSON_BEFORE, "Person"))
_TECHNOLOGY = frozenset(
    "python javascript typescript java rust go kotlin swift ruby php react vue angular svelte next.js node node.js vue.js django flask fastapi rails docker kubernetes "
    "terraform ansible git github gitlab linux ubuntu windows macos android ios postgresql mysql sqlite redis mongodb elasticsearch kafka aws azure gcp "
    "pytorch tensorflow faiss excel word powerpoint figma slack notion obsidian unity blender photoshop chatgpt claude gemini copilot cursor vscode".split()
) | {"vs code", "visual studio"}


def has_latin(text: str) -> bool:
    """Whether the rules may find anything in a text."""
    return _LATIN.search(text) is not None


def small_words(text: str) -> frozenset[str]:
    """The words that a long English text writes in lower case, as everyday words: 'Make' in a heading is no name if the text also has 'make'.

    Nothing for a short text: a name that it writes in lower case is often its topic.
    """
    return frozenset(_SMALL_WORD.findall(text)) if len(text) >= _LONG and not text.islower() else frozenset()


def english_mentions(text: str) -> Iterator[Mention]:
    """What the rules find in the Latin parts of a text; mentions may overlap."""
    small = small_words(text)
    for match in _AT.finditer(text):
        yield Mention(match["name"], "Person", match.start(), match.end(), "rule", aliases=(match[0],))
    titled = list(_TITLED.finditer(text))
    is_inside = cache(partial(_is_inside_a_sentence, text))  # a name may begin hundreds of sentences
    for match in titled:
        yield Mention(match["name"], "Person", match.start(), match.end(), "rule", aliases=(match[0],))
    for match in _RUN.finditer(text):
        if any(other.start() <= match.start() < other.end() for other in titled):
            continue
        named = _name_in(text, match, is_inside, small)
        if named is not None:
            name, start = named
            end = start + len(name)
            yield Mention(name, _type_of(name, _before(text, start), text[end : end + _REACH]), start, end, "rule")


def _before(text: str, start: int) -> str:
    return text[max(start - _REACH, 0) : start]


def _name_in(text: str, match: re.Match[str], is_inside: Callable[[str], bool], small: Set[str]) -> tuple[str, int] | None:
    """The run without the common words at its ends; None where it is only the first word of a sentence, or a word that is also written small."""
    words = list(_SPACED.finditer(match[0]))
    while words and words[0][0].casefold() in _COMMON:
        words.pop(0)
    while words and (words[-1][0].casefold() in _COMMON or (words[-1][0].isdigit() and len(words) == 1)):
        words.pop()
    if len(words) == 2 and words[1][0].isdigit() and words[0][0].casefold() in _TECHNOLOGY:
        words.pop()  # Windows 11, Node.js 20: a version
    if not words:
        return None
    start, end = match.start() + words[0].start(), match.start() + words[-1].end()
    name = re.sub(r"['’]s$", "", text[start:end])
    if len(name) < 2 and not name.isupper():
        return None
    if len(name) == 1:
        return None
    may_be_a_word = len(words) == 1 and (name.casefold() in small or (_begins_sentence(text, start) and not is_inside(name)))
    if may_be_a_word and not _is_name_at_start(name, text, start):
        return None
    return name, start


def _begins_sentence(text: str, start: int) -> bool:
    return _SENTENCE_BEGINS.search(_before(text, start)) is not None


def _is_name_at_start(name: str, text: str, start: int) -> bool:
    """Whether the first word of a sentence is a name: by the words after it, or because it is a known tool."""
    return name.casefold() in _TECHNOLOGY or _PERSON_AFTER.match(text[start + len(name) : start + len(name) + _REACH]) is not None


def _is_inside_a_sentence(text: str, name: str) -> bool:
    """Whether a name occurs elsewhere than at the beginning of a sentence."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        is_whole = not (_LETTER.match(text[start - 1 : start]) or _LETTER.match(text, end))
        if is_whole and not _begins_sentence(text, start):
            return True
        start = text.find(name, start + 1)
    return False


def _type_of(name: str, before: str, after: str) -> str | None:
    """The type by the words of the name, else by the words around it; None where neither shows one."""
    own = next((type_ for pattern, type_ in _BY_NAME if pattern.search(name)), None)
    if own or name.casefold() in _TECHNOLOGY:
        return own or "Technology"
    if _PERSON_AFTER.match(after) and not _AT_WORK_BEFORE.search(before):
        return "Person"
    return next((type_ for pattern, type_ in _BY_WORDS_BEFORE if pattern.search(before)), None)
