"""What is known about a model from its name alone: the prefixes that it wants and the languages that it knows."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

ST_CONFIG = "config_sentence_transformers.json"

_GENERIC_NAMES = frozenset({"model", "models", "data", "weights", "latest", "onnx"})


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The texts that go before a query and a stored text, and their version.

    The version is part of the index's generation, because vectors with other prefixes don't compare.
    """

    query: str
    document: str
    version: str


NO_PREFIXES = Prefixes("", "", "plain")

# Patterns of these tables match the start of a model's own name (`own_name`). The prefixes are from the model cards.
# e5's instruct models want a task description in the query, which they ship with themselves.
_PREFIXES = (
    (r"ruri-v3-", Prefixes("検索クエリ: ", "検索文書: ", "ruri-v3.1")),
    (r"ruri-(small|base|large)", Prefixes("クエリ: ", "文章: ", "ruri.1")),
    (r"(multilingual-)?e5-(small|base|large)(?!.*instruct)", Prefixes("query: ", "passage: ", "e5.1")),
)

# None: all languages. So does a model that matches no pattern.
_LANGUAGES = (
    (r"multilingual|bge-m3|bge-reranker-v2-m3|paraphrase-multilingual|distiluse-base-multilingual|labse|gte-multilingual", None),
    (
        r"ruri-|japanese-|static-embedding-japanese|sarashina-embedding|plamo-embedding|jacolbert|glucose|sup-simcse-ja|comsat-embed-ja",
        ("ja",),
    ),
    (r"(gt-)?all-minilm|all-mpnet|all-distilroberta|multi-qa|msmarco|ms-marco|paraphrase-minilm|gtr-t5|sentence-t5", ("en",)),
    (r"(e5|bge|gte|mxbai|nomic|stella|snowflake).*-en\b|e5-(small|base|large)|bge-(small|base|large)-en|gte-(small|base|large)$", ("en",)),
    (r"ko-|klue|kr-sbert", ("ko",)),
    (r"text2vec.*chinese|bge-(small|base|large)-zh", ("zh",)),
)


def own_name(model: str) -> str:
    """The model's name in lower case with hyphens, without organization and directories.

    `cl-nagoya/ruri-v3-30m`, `/models/ruri-v3-30m` and its directory in a cache all give `ruri-v3-30m`. Parent directories are
    ignored: the model may be in the home directory of a user called ko-taro.
    """
    parts: list[str] = [part.lower().replace("_", "-") for part in re.split(r"[/\\]", model) if part]
    for part in reversed(parts):
        if part.startswith("models--"):  # organization and name, as the Hugging Face cache writes them
            return part.rpartition("--")[2]
    specific = [part for part in parts if part not in _GENERIC_NAMES]
    return specific[-1] if specific else ""


def prefixes_for(name: str, directory: Path | None = None) -> Prefixes:
    """The prefixes of the model's family, or else the `query` and `document` prompts in its directory, or else none.

    `name` is a Hugging Face name or a path.
    """
    model = own_name(name)
    for pattern, prefixes in _PREFIXES:
        if re.match(pattern, model):
            return prefixes
    return _shipped_prefixes(directory) if directory else NO_PREFIXES


def known_languages(model: str) -> tuple[str, ...] | None:
    """The languages of a model, given by name or directory; None for all."""
    name = own_name(model)
    return next((languages for pattern, languages in _LANGUAGES if re.match(pattern, name)), None)


def _shipped_prefixes(directory: Path) -> Prefixes:
    try:
        prompts = json.loads((directory / ST_CONFIG).read_text(encoding="utf-8"))["prompts"]
        query = prompts.get("query") or ""
        document = next((prompts[key] for key in ("document", "passage", "corpus") if prompts.get(key)), "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return NO_PREFIXES  # most models ship none; a damaged file is reported when the model is loaded
    if not query and not document:
        return NO_PREFIXES
    return Prefixes(query, document, f"shipped.{hashlib.sha256(json.dumps([query, document]).encode()).hexdigest()[:8]}")
