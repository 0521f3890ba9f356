"""The texts of the pages in Japanese and English, from `words.toml`, beside the terms that commands have, too."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from memory_mcp.server.terms import TERMS, Terms

WORDS: Mapping[str, list[str]] = {**TERMS, **tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))}


class Words(Terms):
    """The texts in one language."""

    table: ClassVar[Mapping[str, list[str]]] = WORDS
