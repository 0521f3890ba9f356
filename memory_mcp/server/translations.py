"""Sentences in another language, by their English words: a place for a value is a number in braces."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PLACE = re.compile(r"\\\{(\d)\\\}")


@dataclass(frozen=True, slots=True)
class Translations:
    """A table of sentences, and of the values of their placeholders."""

    patterns: Mapping[re.Pattern[str], str]
    parts: "Translations | None" = None

    @classmethod
    def of(cls, sentences: Mapping[str, str], parts: Mapping[str, str] | None = None) -> "Translations":
        # The longest first: a short one with many places fits much.
        ordered = sorted(sentences, key=lambda english: len(re.sub(r"\{\d\}", "", english)), reverse=True)
        return cls({_pattern(english): sentences[english] for english in ordered}, cls.of(parts) if parts else None)

    def find(self, words: str) -> str | None:
        """The sentence with its values, or None if the table doesn't have it."""
        for pattern, translated in self.patterns.items():
            if match := pattern.fullmatch(words):
                return translated.format(*((self.parts and self.parts.find(part)) or part for part in match.groups()))
        return None


def _pattern(english: str) -> re.Pattern[str]:
    """The pattern for a sentence such as `{0} has {1} characters`. A placeholder matches as little as possible, and may be empty."""
    return re.compile(_PLACE.sub(r"(?P<p\1>.*?)", re.escape(english)), re.DOTALL)
