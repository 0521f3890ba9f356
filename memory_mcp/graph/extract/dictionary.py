"""Japanese proper nouns from a dictionary: SudachiPy, where the extra `sudachi` is installed."""

import logging
import re
import threading
from typing import Any

from memory_mcp.characters import is_japanese
from memory_mcp.errors import NotInstalled
from memory_mcp.graph.extract.extraction import TEXT_LIMIT
from memory_mcp.language.names import Mention
from memory_mcp.language.sudachi import installed, open_tokenizer

_TYPES = {"人名": "Person", "地名": "Location"}
NO_TYPE = ""  # a company, an animal, a work: the dictionary does not distinguish them
# Sudachi refuses more than 49,149 bytes at once.
_PIECE = 10_000
_LETTERS = re.compile("^[\u3041-\u309f\u30a1-\u30fc\u4e00-\u9fff々]{2,}$")

logger = logging.getLogger(__name__)


class Dictionary:
    """The installed dictionary, looked up at the first use. Logs one warning where there is none."""

    def __init__(self) -> None:
        self._nouns: ProperNouns | None = None
        self._looked = False

    def get(self) -> "ProperNouns | None":
        """None where SudachiPy is not installed: then annotations, known names and rules find the names."""
        if not self._looked:
            self._looked = True
            name = installed()
            self._nouns = ProperNouns(name) if name else None
            if name is None:
                logger.warning("%s Until then names are found by rules.", NotInstalled("graph.names_by sudachi can't be used", "sudachi"))
        return self._nouns


class ProperNouns:
    """Finds people, places and other names in Japanese texts. The dictionary is opened by the first text: 0.1 s, and some tens of MB."""

    def __init__(self, dictionary: str) -> None:
        self._dictionary = dictionary
        self._guard = threading.Lock()
        self._tokenizer: Any = None

    def open(self) -> None:
        """Opens the dictionary, if it is not."""
        with self._guard:
            self._opened()

    def find(self, text: str) -> list[Mention]:
        """Each name that the dictionary knows: surname and given name as one, titles left out."""
        if not is_japanese(text):
            return []
        text = text[:TEXT_LIMIT]
        with self._guard:
            return [each for start in range(0, len(text), _PIECE) for each in self._mentions(text[start : start + _PIECE], start)]

    def _mentions(self, text: str, offset: int) -> list[Mention]:
        mentions: list[Mention] = []
        for token in self._opened().tokenize(text):
            kind = _kind(token.part_of_speech())
            if kind is None or not _LETTERS.match(token.surface()):
                continue
            start, end = offset + token.begin(), offset + token.end()
            if mentions and mentions[-1].end == start and mentions[-1].type == kind == "Person":
                start = mentions.pop().start
            mentions.append(Mention(text[start - offset : end - offset], kind or None, start, end, "dictionary"))
        return mentions

    def _opened(self) -> Any:
        if self._tokenizer is None:
            self._tokenizer = open_tokenizer(self._dictionary)
        return self._tokenizer


def _kind(part_of_speech: tuple[str, ...]) -> str | None:
    if part_of_speech[1] != "固有名詞":
        return None
    return _TYPES.get(part_of_speech[2], NO_TYPE)
