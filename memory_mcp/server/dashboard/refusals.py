"""Refusals in the language of the page. Operations word them in English; `refusals.toml` has the Japanese of those that people meet."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memory_mcp.config.settings import Privacy
from memory_mcp.dates.format import Language
from memory_mcp.errors import MemoryMCPError
from memory_mcp.server.errors import status_of, wording

_PLACE = re.compile(r"\\\{(\d)\\\}")


@dataclass(frozen=True, slots=True)
class Refused:
    """What a page says of a refusal: a sentence in its language, and the original where there is no translation of it."""

    text: str
    original: str = ""


def refused(error: MemoryMCPError, language: Language, rules: Privacy) -> Refused:
    """The words for an error, with private data redacted."""
    words = wording(str(error), rules)
    if language == "en":
        return Refused(words)
    if japanese := _translated(words):
        return Refused(japanese)
    catalog = _catalog()
    return Refused(catalog.by_status.get(str(status_of(error)), catalog.by_status["400"]), words)


def said(sentence: str, language: Language) -> str:
    """Words of an operation that are no refusal, such as a note, in this language; unchanged where there is no translation."""
    if language == "en":
        return sentence
    clauses = sentence.split("; ")
    translated = [_translated(clause) for clause in clauses]
    if all(translated):
        return "。".join(filter(None, translated))
    return _translated(sentence) or "。".join(known or clause for known, clause in zip(translated, clauses, strict=True))


def _translated(words: str) -> str | None:
    catalog = _catalog()
    for pattern, japanese in catalog.sentences.items():
        if found := pattern.fullmatch(words):
            return japanese.format(*(_inner(catalog, part) for part in found.groups()))
    return None


@dataclass(frozen=True, slots=True)
class _Catalog:
    sentences: Mapping[re.Pattern[str], str]
    parts: Mapping[str, str]
    by_status: Mapping[str, str]


def _inner(catalog: _Catalog, text: str) -> str:
    """What stands in a place of a sentence: itself, or words of ours in Japanese."""
    return catalog.parts.get(text, text)


@cache
def _catalog() -> _Catalog:
    tree = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))
    sentences = {**tree["notes"], **tree["sentences"]}
    # The longest first: a short one with many places fits much.
    patterns = {_pattern(english): sentences[english] for english in sorted(sentences, key=_words_in, reverse=True)}
    return _Catalog(patterns, tree["parts"], tree["status"])


def _words_in(english: str) -> int:
    return len(re.sub(r"\{\d\}", "", english))


def _pattern(english: str) -> re.Pattern[str]:
    """Of `{0} has {1} characters`. A place is as short as it can be, and may be empty."""
    return re.compile(_PLACE.sub(r"(?P<p\1>.*?)", re.escape(english)), re.DOTALL)
