"""Finds the speakers that a question names: 「健太は何が好き？」 asks for what 健太 said."""

import re
from collections.abc import Iterable

from memory_mcp.text.tokens import UNSPACED, normalise

LEAST_CHARACTERS = 2
# Names of the roles in a conversation, which don't name a person.
_ROLES = frozenset(
    "user assistant system me myself you i we they human ai bot agent tool function model self partner other developer admin "
    "ユーザー ユーザ アシスタント システム 私 わたし 僕 ぼく 俺 おれ あなた 君 自分 相手 本人 人間".split()
)
_HONORIFIC = re.compile("(?<=..)(?:さん|くん|君|ちゃん|さま|様|氏|先生|先輩|-(?:san|kun|chan|sama))$")
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30fa\u30fc"
_PARTICLES = "はがのをにでともへやか"


def named_speakers(question: str, sources: Iterable[str | None]) -> frozenset[str]:
    """The sources that the question names, in any width or case, with or without an honorific such as さん."""
    normalized = normalise(question)
    return frozenset(source for source in set(sources) if source and _is_named(source, normalized))


def is_role(source: str) -> bool:
    """Whether a source is only a role in a conversation, such as `user`."""
    return normalise(source).strip() in _ROLES


def _is_named(source: str, question: str) -> bool:
    name = _HONORIFIC.sub("", normalise(source).strip())
    if len(name) < LEAST_CHARACTERS or name in _ROLES or name not in question:
        return False
    return re.search(_begin(name[0]) + re.escape(name) + _end(name[-1]), question) is not None


def _begin(first: str) -> str:
    """The pattern before a name. Words are separated by spaces, katakana by a change of script, hiragana at best by a particle."""
    if re.match(f"[{_KATAKANA}]", first):
        return f"(?<![{_KATAKANA}])"
    if re.match(f"[{_HIRAGANA}]", first):
        return f"(?:(?<![{_HIRAGANA}])|(?<=[{_PARTICLES}]))"
    return "" if re.match(f"[{UNSPACED}]", first) else rf"(?<![^\W{UNSPACED}])"


def _end(last: str) -> str:
    if re.match(f"[{_KATAKANA}]", last):
        return f"(?![{_KATAKANA}])"
    return "" if re.match(f"[{UNSPACED}]", last) else rf"(?![^\W{UNSPACED}])"
