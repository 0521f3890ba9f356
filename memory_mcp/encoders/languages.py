"""Whether a model knows the language of a text, judged by the script of the text: cheap, and enough to ignore a model that doesn't."""

import re
from collections.abc import Collection, Sequence
from typing import Any, TypeVar, cast

from memory_mcp.encoders.models import Centers

Model = TypeVar("Model")

# A CJK character carries as much as about three letters.
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
}  # any other language counts as Latin
_SAMPLE_CHARACTERS = 2_000


def script_of(text: str) -> str | None:
    """The main script of a text; None if it has no letters. Han in a text with kana is Japanese and counts as kana."""
    sample = text[:_SAMPLE_CHARACTERS]
    weights = {name: weight * sum(1 for _ in pattern.finditer(sample)) for name, weight, pattern in _SCRIPTS}
    if weights["kana"]:
        weights["kana"] += weights.pop("han")
    script = max(weights, key=lambda name: weights[name])
    return script if weights[script] else None


def covers(languages: Collection[str] | None, text: str, without: Collection[str] = ()) -> bool:
    """Whether a model of these languages (`ja`, `en`; None: all) but those `without` can score a text. Any model can score a text without letters."""
    script = script_of(text)
    if languages is None:
        return not any(script == _scripts(language)[0] for language in without)
    return script is None or any(script in _scripts(language) for language in languages if language not in without)


def _scripts(language: str) -> Sequence[str]:
    return _WRITTEN_IN.get(language.lower()[:2], ("latin",))


class _Limited:
    """A model with other languages than its own, otherwise as it is."""

    def __init__(self, model: Any, languages: Sequence[str]) -> None:
        self._model, self._languages = model, tuple(languages)

    @property
    def centers(self) -> Centers | None:
        """Of an embedder, with what the languages say of them."""
        centers: Centers | None = self._model.centers
        return centers and centers.limited(self._languages)

    def covers(self, text: str) -> bool:
        return covers(self._languages, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def limited(model: Model, languages: Sequence[str]) -> Model:
    """A model that covers the languages of `embeddings_languages` or `reranker_languages`."""
    return cast("Model", _Limited(model, languages))
