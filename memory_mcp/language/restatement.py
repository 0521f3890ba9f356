"""Whether a text repeats another one: nearly the same words, and the same names and numbers.

「健太は苺が好き。」 and 「健太は苺が好きなんだ」 say the same, 「美咲は苺が好き。」 and 「健太は苺が好きではない。」 do not.
"""

import unicodedata

from memory_mcp.characters import HAN, KATAKANA
from memory_mcp.language.contradiction import is_negated
from memory_mcp.language.tokens import is_function_word, jaccard, normalise, tokens
from memory_mcp.patterns import bounded

# The least Jaccard index of the tokens.
ALIKE = 0.6
# What distinguishes two statements of the same form. A Latin word in lower case is no name.
_TELLING = bounded(rf"[{HAN}]+|[{KATAKANA}]+|[a-z]*[A-Z0-9][A-Za-z0-9]*")


def restates(text: str, other: str) -> bool:
    """Whether `text` repeats `other`."""
    if telling(text) != telling(other) or is_negated(normalise(text)) != is_negated(normalise(other)):
        return False
    return jaccard(set(tokens(text)), set(tokens(other))) >= ALIKE


def is_nearer(text: str, other: str, third: str) -> bool:
    """Whether `text` has more words in common with `other` than with `third`."""
    words = set(tokens(text))
    return jaccard(words, set(tokens(other))) > jaccard(words, set(tokens(third)))


def telling(text: str) -> frozenset[str]:
    """The names and numbers of a text, in normalized width and case."""
    return frozenset(normalise(word) for word in _TELLING.findall(unicodedata.normalize("NFKC", text)) if not is_function_word(word))
