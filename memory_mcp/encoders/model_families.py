"""The prefixes that a model wants and the languages that it knows: stated by its directory, or by the table of known models, or guessed.

A name on the hub identifies a model. The name of a directory does not: what follows from it is a guess.
"""

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from memory_mcp.encoders.languages import covers

if TYPE_CHECKING:  # it needs numpy
    from memory_mcp.encoders.models import Centers

ST_CONFIG = "config_sentence_transformers.json"
MODEL_CARD = "README.md"

_GENERIC_NAMES = frozenset({"model", "models", "data", "weights", "latest", "onnx"})


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The texts that go before a query and a stored text, and their version.

    The version is part of the index's generation, because vectors with other prefixes don't compare.
    """

    query: str
    document: str
    version: str


@dataclass(frozen=True, slots=True)
class Scale:
    """What nearness means. `weight`: that of the vectors relative to the words. `alike` and `same`: from where on two memories are linked as similar, and proposed
    for merging as of the same meaning. `spread`: the standard deviation of the nearness of texts that have nothing to do with each other."""

    weight: float
    alike: float
    same: float
    spread: float


# Of every model whose vectors are compared apart from their centers, but for its own spread and weight; and of one that knows no language whose centers are known, of whose
# cosines nothing is known (docs/decisions/0025-what-vectors-count.md).
APART = Scale(weight=0.5, alike=0.4, same=0.8, spread=0.09)
AS_THEY_ARE = Scale(weight=0.5, alike=0.86, same=0.95, spread=0.09)

NO_PREFIXES = Prefixes("", "", "plain")

Languages = tuple[str, ...] | None  # None: all


@dataclass(frozen=True, slots=True)
class Traits:
    """What a model is used with. `guessed`: which of "prefixes" and "languages" are not known for certain; `because`: what the guess is based on.
    `unlearned`: of the languages those that it was found not to know."""

    prefixes: Prefixes
    languages: Languages = None
    guessed: frozenset[str] = frozenset()
    because: str = ""
    unlearned: tuple[str, ...] = ()

    def covers(self, text: str) -> bool:
        """Whether the model knows the language of a text."""
        return covers(self.languages, text, self.unlearned)

    def guess(self, *, languages_set: bool = False) -> str | None:
        """What was guessed, as a clause; None if nothing was. `languages_set`: config.json lists the model's languages."""
        prefixes = f'the prefixes "{self.prefixes.query}" and "{self.prefixes.document}"' if self.prefixes != NO_PREFIXES else "no prefixes"
        languages = f"the languages {', '.join(self.languages)}" if self.languages else "all languages"
        parts = [prefixes] if "prefixes" in self.guessed else []
        if "languages" in self.guessed and not languages_set:
            parts.append(languages)
        guessed = [f"{' and '.join(parts)}, {self.because}"] if parts else []
        if self.unlearned and not languages_set:
            guessed.append(f"no questions in {' and '.join(self.unlearned)}, because it finds too few of the built-in answers")
        return "; ".join(guessed) or None

    def without(self, languages: Collection[str]) -> "Traits":
        """The same of a model that was found not to know these languages."""
        return replace(
            self, unlearned=tuple(language for language in sorted(languages) if self.languages is None or language in self.languages)
        )

    def with_known_prefixes(self) -> "Traits":
        """The same with prefixes that are no guess: they come from elsewhere, or don't apply."""
        return replace(self, guessed=self.guessed - {"prefixes"})


UNKNOWN = Traits(NO_PREFIXES)

# Patterns of these tables match the start of a model's own name (`own_name`). The prefixes are from the model cards.
# e5's instruct models want a task description in the query, which they ship with themselves.
_PREFIXES = (
    (r"ruri-v3-", Prefixes("検索クエリ: ", "検索文書: ", "ruri-v3.1")),
    (r"ruri-(small|base|large)", Prefixes("クエリ: ", "文章: ", "ruri.1")),
    (r"(multilingual-)?e5-(small|base|large)(?!.*instruct)", Prefixes("query: ", "passage: ", "e5.1")),
)

# What the vectors count beside the words of a model that was taught to find texts by questions, as its prefixes show, and of one that was taught which texts are
# alike (docs/decisions/0025-what-vectors-count.md).
OF_QUESTIONS, OF_TEXTS = 0.65, 0.5

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


def traits_of(name: str, directory: Path | None = None) -> Traits:
    """The prefixes and languages of a model, given by a Hugging Face name or a path, and what of them is only guessed."""
    stated = {
        "prefixes": directory is not None and _shipped_prefixes(directory) is not None,
        "languages": directory is not None and _shipped_languages(directory) is not None,
    }
    model = own_name(name)
    in_tables = any(re.match(pattern, model) for pattern, _ in (*_PREFIXES, *_LANGUAGES))
    known = in_tables and _is_hub_name(name)
    return Traits(
        prefixes_for(name, directory),
        languages_of(name, directory),
        frozenset() if known else frozenset(trait for trait, is_stated in stated.items() if not is_stated),
        f"because its name is {model}" if in_tables else "because nothing says which",
    )


def prefixes_for(name: str, directory: Path | None = None) -> Prefixes:
    """The `query` and `document` prompts in the model's directory, or else the prefixes of the model's family, or else none.

    `name` is a Hugging Face name or a path.
    """
    model = own_name(name)
    of_family = next((prefixes for pattern, prefixes in _PREFIXES if re.match(pattern, model)), NO_PREFIXES)
    shipped = _shipped_prefixes(directory) if directory else None
    if shipped is None or (shipped.query, shipped.document) == (of_family.query, of_family.document):
        return of_family  # of the same version: the vectors compare
    return shipped


def languages_of(name: str, directory: Path | None = None) -> Languages:
    """The languages in the model card in the directory, or else those of the name."""
    shipped = _shipped_languages(directory) if directory else None
    if shipped is None:
        return known_languages(name)
    return None if "multilingual" in shipped else shipped


def known_languages(model: str) -> Languages:
    """The languages of a model by its name alone, given by name or directory."""
    name = own_name(model)
    return next((languages for pattern, languages in _LANGUAGES if re.match(pattern, name)), None)


def scale_of(centers: "Centers | None") -> Scale:
    """The scale of a model's vectors."""
    return replace(APART, spread=centers.spread, weight=centers.weight) if centers else AS_THEY_ARE


def _is_hub_name(name: str) -> bool:
    """Whether it identifies a model: a name on the hub, or a place in a copy of the hub."""
    return "models--" in name or not (Path(name).is_absolute() or Path(name).expanduser().is_dir())


def _shipped_languages(directory: Path) -> tuple[str, ...] | None:
    """The languages that the front matter of a model card lists; None if it lists none."""
    try:
        text = (directory / MODEL_CARD).read_text(encoding="utf-8")
        _, front_matter, _ = text.split("---\n", 2) if text.startswith("---\n") else ("", "", "")
        card: Any = yaml.safe_load(front_matter)
        languages = card["language"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, yaml.YAMLError):
        return None
    listed = [languages] if isinstance(languages, str) else languages
    return tuple(map(str, listed)) if isinstance(listed, list) and listed else None


def _shipped_prefixes(directory: Path) -> Prefixes | None:
    try:
        prompts = json.loads((directory / ST_CONFIG).read_text(encoding="utf-8"))["prompts"]
        query = prompts.get("query") or ""
        document = next((prompts[key] for key in ("document", "passage", "corpus") if prompts.get(key)), "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # most models ship none; a damaged file is reported when the model is loaded
    if not query and not document:
        return None  # sentence-transformers writes empty ones for every model
    return Prefixes(query, document, f"shipped.{hashlib.sha256(json.dumps([query, document]).encode()).hexdigest()[:8]}")
