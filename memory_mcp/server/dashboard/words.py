"""The texts of the pages in Japanese and English, from `words.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_mcp.dates.format import Language
from memory_mcp.wording import catalog, in_language

_ORDER: tuple[Language, ...] = ("en", "ja")
WORDS: Mapping[str, list[str]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Words:
    """The texts in one language."""

    language: Language

    def __call__(self, name: str, /, **values: Any) -> str:
        """The text of this name, its `{placeholders}` filled in."""
        text = WORDS[name][_ORDER.index(self.language)]
        return text.format(**values) if values else text

    def term(self, kind: str, value: str) -> str:
        """A word of the operations, such as a kind of memory, in the language of the page; one that has no text is shown as it is."""
        name = f"{kind}_{value}"
        return self(name) if name in WORDS else value

    def sentence(self, sentence: str) -> str:
        """A sentence of the operations in the language of the page, as it is where there is no translation."""
        return in_language(sentence, self.language)

    def left_out(self, kind: str) -> str:
        """What an import leaves out, in the language of the page."""
        return kind if self.language == "en" else catalog()["left_out"].get(kind, kind)
