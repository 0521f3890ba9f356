"""The speakers of memories: who of them is named in a question, and who is an assistant or only a role in a conversation."""

import re
from collections.abc import Iterable, Sequence

from memory_mcp.characters import HIRAGANA, KATAKANA
from memory_mcp.language.kanji import with_usual_kanji
from memory_mcp.language.names import bare
from memory_mcp.language.tokens import UNSPACED, normalise
from memory_mcp.lexicon import words

LEAST_CHARACTERS = 2
# The roles of what is no person, whose texts are long and repeat a person's; and assistants by name, as their exports, hooks and clients
# write it.
ASSISTANT_ROLES = frozenset((*words("en", "assistant_roles"), *words("ja", "assistant_roles")))
ASSISTANT_NAMES = frozenset(words("en", "assistant_names"))
# Names of the roles in a conversation, which don't name a person.
_ROLES = ASSISTANT_ROLES | {word for language in ("en", "ja") for table in ("roles", "pronouns") for word in words(language, table)}
# A past statement, not a request: "Can you suggest a film?" is a request.
_SAID = (
    "said|told|suggested|recommended|mentioned|advised|gave|explained|wrote|promised|proposed|listed|showed|described|answered|"
    "outlined|provided"
)
_FOR_ASSISTANT = re.compile(
    rf"\b(?:did|had|have|were)\s+you\b|\byou\s+(?:\w+\s+)?(?:{_SAID})\b|"
    r"\byour\s+(?:advice|suggestion|recommendation|answer|explanation|reply|response|proposal)|"
    r"(?:あなた|君|きみ|お前|アシスタント)(?:は|が|の|に).{0,20}(?:言|話|教え|勧め|提案|答|約束|説明)|"
    r"(?:言|教え|勧め|すすめ|薦め|提案し|説明し|アドバイスし|答え)って?て?くれ"
)
_BOUNDARIES = tuple(
    (re.compile(script), before, after)
    for script, before, after in (
        (f"[{KATAKANA}]", f"(?<![{KATAKANA}])", f"(?![{KATAKANA}])"),
        (f"[{HIRAGANA}]", f"(?:(?<![{HIRAGANA}])|(?<=[{''.join(words('ja', 'particles'))}]))", ""),
        (f"[{UNSPACED}]", "", ""),
        ("", rf"(?<![^\W{UNSPACED}])", rf"(?![^\W{UNSPACED}])"),
    )
)


def named_speakers(question: str, sources: Iterable[str | None]) -> frozenset[str]:
    """The sources that the question names, in any width or case, with or without an honorific such as さん."""
    normalized = with_usual_kanji(normalise(question))
    return frozenset(source for source in set(sources) if source and _is_named(source, normalized))


def asks_assistant(question: str) -> bool:
    """Whether a question is for the assistant's own statements: "What did you recommend?", 「あなたは何て言った？」."""
    return _FOR_ASSISTANT.search(normalise(question)) is not None


def is_assistant(source: str | None) -> bool:
    """Whether a source is the assistant, the system or a tool, or an assistant's name."""
    return source is not None and normalise(source).strip() in ASSISTANT_ROLES | ASSISTANT_NAMES


def is_role(source: str) -> bool:
    """Whether a source is only a role in a conversation, such as `user`."""
    return normalise(source).strip() in _ROLES


def _is_named(source: str, question: str) -> bool:
    name = with_usual_kanji(normalise(source).strip())
    name = without if len(without := bare(name)) >= LEAST_CHARACTERS else name
    if len(name) < LEAST_CHARACTERS or name in _ROLES or name not in question:
        return False
    before, after = (_boundaries(character)[side] for side, character in enumerate((name[0], name[-1])))
    return re.search(before + re.escape(name) + after, question) is not None


def _boundaries(character: str) -> Sequence[str]:
    """The patterns before and after a name that begins or ends with this character. Words are separated by spaces, katakana by a change of
    script, hiragana at best by a particle before it."""
    return next(boundaries for script, *boundaries in _BOUNDARIES if script.match(character))
