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
from memory_mcp.server.translations import Translations

# What an import left out: `left out: templates: 2 (a.md; b.md), comments: 1 (c.md)`.
_LEFT_OUT, _KIND = "left out: ", re.compile(r"(?:^|(?<=\), ))([^:()]+)(?=: \d+ \()")


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal as a page shows it: a sentence in the page's language, and the original if it has no translation."""

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


def sentence_in(sentence: str, language: Language) -> str:
    """Words of an operation that are no refusal, such as a note, in this language; unchanged where there is no translation."""
    if language == "en":
        return sentence
    if sentence.startswith(_LEFT_OUT):
        return _catalog().left_out[""] + _KIND.sub(lambda kind: kind_left_out(kind[0], language), sentence.removeprefix(_LEFT_OUT))
    clauses = sentence.split("; ")
    translated = [_translated(clause) for clause in clauses]
    if all(translated):
        return "。".join(filter(None, translated))
    return _translated(sentence) or "。".join(known or clause for known, clause in zip(translated, clauses, strict=True))


def kind_left_out(kind: str, language: Language) -> str:
    """A kind of what an import left out; unchanged where there is no translation."""
    return kind if language == "en" else _catalog().left_out.get(kind, kind)


def _translated(words: str) -> str | None:
    return _catalog().sentences.find(words)


@dataclass(frozen=True, slots=True)
class _Catalog:
    sentences: Translations
    by_status: Mapping[str, str]
    left_out: Mapping[str, str]


@cache
def _catalog() -> _Catalog:
    tree = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))
    return _Catalog(Translations.of({**tree["notes"], **tree["sentences"]}, tree["parts"]), tree["status"], tree["left_out"])
