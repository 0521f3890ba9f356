"""The Japanese dictionary of SudachiPy, where the extra `sudachi` is installed."""

import importlib
import importlib.util
from typing import Any

# Dictionaries in the order of preference.
_DICTIONARIES = ("full", "core", "small")


def installed() -> str | None:
    """The installed dictionary; None without SudachiPy or without a dictionary for it."""
    if importlib.util.find_spec("sudachipy") is None:
        return None
    return next((name for name in _DICTIONARIES if importlib.util.find_spec(f"sudachidict_{name}") is not None), None)


def open_tokenizer(dictionary: str) -> Any:
    """A tokenizer with this dictionary, for one thread at a time: 0.1 s, and up to 100 MB of the dictionary's file in memory."""
    sudachi = importlib.import_module("sudachipy")
    return sudachi.Dictionary(dict=dictionary).tokenizer(mode=sudachi.SplitMode.C)
