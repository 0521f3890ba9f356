"""What a text must contain for a regular expression to match: looking for a few words is much faster than trying the expression."""

import re
from collections.abc import Iterable
from functools import cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

# A larger class of characters, such as all letters, says nothing.
_CLASS_LIMIT = 64


@cache
def needed_words(pattern: re.Pattern[str]) -> frozenset[str]:
    """Words of which every match, or what it looks ahead or back to, contains at least one; none where there are no such words."""
    words = _of_sequence(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)) if not pattern.flags & re.IGNORECASE else None
    return frozenset(word for word in words or () if not any(other != word and other in word for other in words or ()))


def _of_sequence(parts: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    """Of the parts of a sequence, each of which is needed, the one with the longest words."""
    found: list[frozenset[str]] = []
    letters = ""
    for code, argument in parts:
        if code is codes.LITERAL:
            letters += chr(argument)
            continue
        found += [frozenset([letters])] if letters else []
        letters = ""
        words = _of_part(code, argument)
        found += [words] if words else []
    found += [frozenset([letters])] if letters else []
    return max(found, key=lambda words: (min(map(len, words)), -len(words)), default=None)


def _of_part(code: Any, argument: Any) -> frozenset[str] | None:
    if code is codes.IN:
        return _of_class(argument)
    if code is codes.BRANCH:
        branches = [_of_sequence(branch) for branch in argument[1]]
        return frozenset().union(*(words for words in branches if words)) if all(branches) else None
    if code is codes.SUBPATTERN:
        return None if argument[1] & re.IGNORECASE else _of_sequence(argument[-1])
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        return _of_sequence(argument[2]) if argument[0] else None
    return _of_sequence(argument[1]) if code is codes.ASSERT else None


def _of_class(members: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    characters: set[str] = set()
    for code, argument in members:
        if code is codes.LITERAL:
            characters.add(chr(argument))
        elif code is codes.RANGE and argument[1] - argument[0] < _CLASS_LIMIT:
            characters.update(map(chr, range(argument[0], argument[1] + 1)))
        else:
            return None
    return frozenset(characters)
