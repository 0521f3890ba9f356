"""Which languages a model knows, and which one a text is in: by its script, which is cheap and enough to keep a model quiet."""

import re
from collections.abc import Collection, Sequence

from memory_mcp.encoders.model_names import own_name
from memory_mcp.encoders.protocols import Embedder, Reranker, Vectors

# Read by the start of a model's own name. A model that is not here counts as
# knowing all languages.
_KNOWN = (
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

# A CJK character says as much as about three letters.
_SCRIPTS = (
    ("kana", 3, re.compile("[\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f]")),
    ("han", 3, re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆\U00020000-\U0003ffff]")),
    ("hangul", 3, re.compile("[\u1100-\u11ff\uac00-\ud7af]")),
    ("latin", 1, re.compile("[A-Za-z\u00c0-\u024f\uff21-\uff3a\uff41-\uff5a]")),
    ("cyrillic", 1, re.compile("[\u0400-\u04ff]")),
    ("greek", 1, re.compile("[\u0370-\u03ff]")),
    ("arabic", 1, re.compile("[\u0600-\u06ff]")),
    ("hebrew", 1, re.compile("[\u0590-\u05ff]")),
    ("thai", 1, re.compile("[\u0e00-\u0e7f]")),
    ("devanagari", 1, re.compile("[\u0900-\u097f]")),
)
_WRITTEN_IN = {
    "ja": ("kana", "han"),
    "zh": ("han",),
    "ko": ("hangul",),
    "ru": ("cyrillic",),
    "uk": ("cyrillic",),
    "bg": ("cyrillic",),
    "el": ("greek",),
    "ar": ("arabic",),
    "fa": ("arabic",),
    "he": ("hebrew",),
    "th": ("thai",),
    "hi": ("devanagari",),
}  # any other language counts as written in Latin letters
_LOOKED_AT_CHARACTERS = 2_000


def known_languages(model: str) -> tuple[str, ...] | None:
    """The languages that the table gives for a model's name or directory; None for all."""
    name = own_name(model)
    return next((languages for pattern, languages in _KNOWN if re.match(pattern, name)), None)


def script_of(text: str) -> str | None:
    """The script that most of a text is in; None when it has no letters. Han among kana is Japanese and counts as kana."""
    sample = text[:_LOOKED_AT_CHARACTERS]
    weights = {name: weight * sum(1 for _ in pattern.finditer(sample)) for name, weight, pattern in _SCRIPTS}
    if weights["kana"]:
        weights["kana"] += weights.pop("han")
    found = max(weights, key=lambda name: weights[name])
    return found if weights[found] else None


def covers(languages: Collection[str] | None, text: str) -> bool:
    """Whether a model of these languages (`ja`, `en`; None: all) can judge a text. A text without letters is no reason not to."""
    if languages is None:
        return True
    script = script_of(text)
    return script is None or any(script in _WRITTEN_IN.get(language.lower()[:2], ("latin",)) for language in languages)


class EmbedderOfLanguages:
    """An embedder whose languages somebody has set."""

    def __init__(self, embedder: Embedder, languages: Sequence[str]) -> None:
        self._embedder = embedder
        self._languages = tuple(languages)
        self.name, self.dimension, self.generation = embedder.name, embedder.dimension, embedder.generation
        self.max_tokens = embedder.max_tokens

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """As the model does."""
        return self._embedder.token_spans(text)

    def covers(self, text: str) -> bool:
        """By the languages that were set."""
        return covers(self._languages, text)

    def embed_query(self, text: str) -> Vectors:
        """As the model does."""
        return self._embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """As the model does."""
        return self._embedder.embed_documents(texts)


class RerankerOfLanguages:
    """A reranker whose languages somebody has set."""

    def __init__(self, reranker: Reranker, languages: Sequence[str]) -> None:
        self._reranker = reranker
        self._languages = tuple(languages)
        self.name = reranker.name

    def covers(self, text: str) -> bool:
        """By the languages that were set."""
        return covers(self._languages, text)

    def score(self, query: str, texts: Sequence[str], deadline: float | None = None, at_least: int | None = None) -> list[float] | None:
        """As the model does."""
        return self._reranker.score(query, texts, deadline, at_least)
