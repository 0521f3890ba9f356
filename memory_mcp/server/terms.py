"""What names that programs read, such as `keyword`, are called in Japanese and English, from `terms.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from memory_mcp.dates.format import Language
from memory_mcp.wording import catalog, in_language

_ORDER: tuple[Language, ...] = ("en", "ja")
TERMS: Mapping[str, list[str]] = tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Terms:
    """The names in one language."""

    language: Language
    table: ClassVar[Mapping[str, list[str]]] = TERMS

    def __call__(self, name: str, /, **values: Any) -> str:
        """The text of this name, its `{placeholders}` filled in."""
        text = self.table[name][_ORDER.index(self.language)]
        return text.format(**values) if values else text

    @property
    def comma(self) -> str:
        """What is between the words of a list."""
        return "、" if self.language == "ja" else ", "

    def term(self, kind: str, value: str) -> str:
        """A word of the operations, such as a kind of memory; one that has no text is shown as it is."""
        name = f"{kind}_{value}"
        return self(name) if name in self.table else value

    def sentence(self, sentence: str) -> str:
        """A sentence of the operations, as it is where there is no translation."""
        return in_language(sentence, self.language)

    def left_out(self, kind: str) -> str:
        """What an import leaves out."""
        return kind if self.language == "en" else catalog()["left_out"].get(kind, kind)
