"""What a model wants in front of a text, so that it tells queries from stored texts."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from memory_mcp.encoders.model_names import own_name

ST_CONFIG = "config_sentence_transformers.json"


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The two prefixes, and the version that is part of the index's generation: vectors with other prefixes don't compare."""

    query: str
    document: str
    version: str


NONE = Prefixes("", "", "plain")

# Read by the start of a model's own name. From the model cards.
# e5's instruct models want a task description in the query, which they ship with themselves.
_FAMILIES = (
    (r"ruri-v3-", Prefixes("検索クエリ: ", "検索文書: ", "ruri-v3.1")),
    (r"ruri-(small|base|large)", Prefixes("クエリ: ", "文章: ", "ruri.1")),
    (r"(multilingual-)?e5-(small|base|large)(?!.*instruct)", Prefixes("query: ", "passage: ", "e5.1")),
)


def prefixes_for(name: str, directory: Path | None = None) -> Prefixes:
    """By the model's family, else by what its directory says of `query` and `document`, else none.

    `name` is a Hugging Face name or a path.
    """
    model = own_name(name)
    for pattern, prefixes in _FAMILIES:
        if re.match(pattern, model):
            return prefixes
    return _shipped(directory) if directory else NONE


def _shipped(directory: Path) -> Prefixes:
    try:
        prompts = json.loads((directory / ST_CONFIG).read_text(encoding="utf-8"))["prompts"]
        query = prompts.get("query") or ""
        document = next((prompts[key] for key in ("document", "passage", "corpus") if prompts.get(key)), "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return NONE  # most models ship none; a damaged file is found when the model is loaded
    if not query and not document:
        return NONE
    return Prefixes(query, document, f"shipped.{hashlib.sha256(json.dumps([query, document]).encode()).hexdigest()[:8]}")
