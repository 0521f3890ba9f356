"""Japanese proper nouns from a dictionary: SudachiPy, where the extra `sudachi` is installed."""

import importlib
import importlib.util
import logging
import threading
from functools import cache
from typing import Any

from memory_mcp.characters import is_japanese
from memory_mcp.errors import NotInstalled
from memory_mcp.graph.extract.extraction import TEXT_LIMIT
from memory_mcp.language.names import Mention

# Dictionaries in the order of preference.
_DICTIONARIES = ("full", "core", "small")
# A company, an animal or a work has no type: the dictionary does not distinguish them.
_TYPES = {"人名": "Person", "地名": "Location"}
# Sudachi refuses more than 49,149 bytes at once.
_PIECE = 10_000

logger = logging.getLogger(__name__)


def installed() -> str | None:
    """The installed dictionary; None without SudachiPy or without a dictionary for it."""
    if importlib.util.find_spec("sudachipy") is None:
        return None
    return next((name for name in _DICTIONARIES if importlib.util.find_spec(f"sudachidict_{name}") is not None), None)


@cache
def proper_nouns() -> "ProperNouns | None":
    """Those of the installed dictionary. None, and one warning, where there is none: then annotations, known names and rules find the names."""
    if name := installed():
        return ProperNouns(name)
    logger.warning("%s Until then names are found by rules.", NotInstalled("graph.names_by sudachi can't be used", "sudachi"))
    return None


class ProperNouns:
    """Finds people, places and other names in Japanese texts. The dictionary is opened by the first text: 0.1 s, and up to 100 MB of its file."""

    def __init__(self, dictionary: str) -> None:
        self._dictionary = dictionary
        self._guard = threading.RLock()
        self._tokenizer: Any = None

    def open(self) -> None:
        """Opens the dictionary, if it is not."""
        with self._guard:
            if self._tokenizer is None:
                sudachi = importlib.import_module("sudachipy")
                self._tokenizer = sudachi.Dictionary(dict=self._dictionary).tokenizer(mode=sudachi.SplitMode.C)

    def find(self, text: str) -> list[Mention]:
        """Each name that the dictionary knows: surname and given name as one, titles left out."""
        if not is_japanese(text):
            return []
        text = text[:TEXT_LIMIT]
        with self._guard:
            self.open()
            return [each for start in range(0, len(text), _PIECE) for each in self._mentions(text[start : start + _PIECE], start)]

    def _mentions(self, text: str, offset: int) -> list[Mention]:
        mentions: list[Mention] = []
        for token in self._tokenizer.tokenize(text):
            name, (_, is_proper, kind, *_) = token.surface(), token.part_of_speech()
            if is_proper != "固有名詞" or len(name) < 2 or not (name.isalpha() and all(map(is_japanese, name))):
                continue
            type_, start, end = _TYPES.get(kind), offset + token.begin(), offset + token.end()
            if mentions and mentions[-1].end == start and mentions[-1].type == type_ == "Person":
                start = mentions.pop().start
            mentions.append(Mention(text[start - offset : end - offset], type_, start, end, "dictionary"))
        return mentions
