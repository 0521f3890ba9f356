"""Sentences in another language, by their English words: a place for a value is a number in braces."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PLACE = re.compile(r"\\\{(\d)\\\}")


@dataclass(frozen=True, slots=True)
class Translations:
    """A table of sentences, and of the values of their placeholders."""

    patterns: Mapping[re.Pattern[str], str]
    parts: Mapping[str, str]

    @classmethod
    def of(cls, sentences: Mapping[str, str], parts: Mapping[str, str]) -> "Translations":
        # The longest first: a short one with many places fits much.
        return cls({_pattern(english): sentences[english] for english in sorted(sentences, key=_words_in, reverse=True)}, parts)

    def find(self, words: str) -> str | None:
        """The sentence with its values, or None if the table doesn't have it."""
        for pattern, translated in self.patterns.items():
            if match := pattern.fullmatch(words):
                return translated.format(*(self.parts.get(part, part) for part in match.groups()))
        return None


def _words_in(english: str) -> int:
    return len(re.sub(r"\{\d\}", "", english))


def _pattern(english: str) -> re.Pattern[str]:
    """Of `{0} has {1} characters`. A place is as short as it can be, and may be empty."""
    return re.compile(_PLACE.sub(r"(?P<p\1>.*?)", re.escape(english)), re.DOTALL)
