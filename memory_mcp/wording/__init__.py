"""What people read, in their language: a sentence knows its id and its values, `ja.toml` has the Japanese by the id.

As in gettext, the id is the English text with `{}` for each value: it is read where it is used, and there is no second table to keep. The
catalog is plain text, and its language an argument instead of a variable of the environment, which is all that gettext would add.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

PLACE = "{}"
# What a client prefers that wants the sentences of an answer, and the field that has them.
SENTENCES = "sentences"


class Sentence(str):
    """An English text that can be said in another language. Its `values` are texts, or sentences themselves."""

    __slots__ = ("id", "values")
    id: str
    values: tuple[str, ...]

    def __new__(cls, id: str, values: tuple[str, ...]) -> "Sentence":  # noqa: A002
        first, *rest = id.split(PLACE)
        made = super().__new__(cls, first + "".join(value + text for value, text in zip(values, rest, strict=True)))
        made.id, made.values = id, values
        return made

    def __str__(self) -> str:
        """The sentence itself, so that `str(error)` is one."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Processes that read files send sentences to the server."""
        return Sentence, (self.id, self.values)

    def as_json(self) -> dict[str, Any]:
        """The id, and the values as texts or as sentences."""
        return {"id": self.id, "values": [value.as_json() if isinstance(value, Sentence) else value for value in self.values]}

    @classmethod
    def of_json(cls, tree: Mapping[str, Any]) -> "Sentence":
        """The sentence that `as_json` has written."""
        return cls(tree["id"], tuple(value if isinstance(value, str) else cls.of_json(value) for value in tree["values"]))

    def with_values(self, change: Callable[[str], str]) -> "Sentence":
        """The sentence with other values."""
        return Sentence(
            self.id, tuple(value.with_values(change) if isinstance(value, Sentence) else change(value) for value in self.values)
        )


def sentence(id: str, *values: object) -> Sentence:  # noqa: A002
    """A sentence with a value for each `{}`, such as `sentence("{} has {} characters", name, count)`."""
    return Sentence(id, tuple(map(str, values)))


def filled(texts: Sequence[str], values: Iterable[object]) -> list[str]:
    """The texts with the values for their `{}`, in order. What is a sentence has its own; without values, `{}` is a text."""
    rest = list(map(str, values))
    if not rest:
        return list(texts)
    sentences = []
    for text in texts:
        places = 0 if isinstance(text, Sentence) else text.count(PLACE)
        sentences.append(Sentence(text, tuple(rest[:places])) if places else text)
        rest = rest[places:]
    if rest:
        raise ValueError(f"more values than places: {texts}")
    return sentences


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning where it has more characters."""
    return text if len(text) <= limit else text[:limit]


def masked(text: str, mask: Callable[[str], str]) -> str:
    """The text as `mask` changes it. What was a sentence stays one, unless more of it is changed than its values."""
    changed = mask(text)
    if isinstance(text, Sentence) and (kept := text.with_values(mask)) == changed:
        return kept
    return changed


def joined(*texts: str) -> Sentence:
    """Texts and sentences as one sentence, with the values of all."""
    pieces = [text if isinstance(text, Sentence) else Sentence(PLACE, (text,)) if PLACE in text else Sentence(text, ()) for text in texts]
    return Sentence("".join(piece.id for piece in pieces), tuple(value for piece in pieces for value in piece.values))


def clauses(texts: Sequence[str]) -> Sentence:
    """Clauses of one sentence, with semicolons between them."""
    return Sentence("; ".join(PLACE for _ in texts), tuple(texts))


def in_japanese(text: str) -> str | None:
    """The Japanese of a sentence or of a text without values; None if there is none. Blanks around it stay."""
    return _found(text, catalog()["sentences"])


def _found(text: str, table: Mapping[str, str]) -> str | None:
    id, values = (text.id, text.values) if isinstance(text, Sentence) else (text, ())  # noqa: A001
    words = id if id in table else id.strip()
    if values and not id.replace(PLACE, "").strip("; ."):
        return "。".join(map(_value, values)) + ("。" if id.endswith(".") else "")
    japanese = table.get(words)
    if japanese is None:
        return None
    return id.replace(words, japanese.format(*map(_value, values)) if values else japanese)


def _value(value: str) -> str:
    if not isinstance(value, Sentence) and " " not in value:  # a name, perhaps: a word of ours is marked as a sentence
        return value
    return _found(value, catalog()["values"]) or _found(value, catalog()["left_out"]) or in_japanese(value) or value


def in_language(text: str, language: Literal["en", "ja"]) -> str:
    """A sentence in a language; as it is where there is no translation."""
    return text if language == "en" else in_japanese(text) or text


@cache
def catalog() -> Mapping[str, Mapping[str, str]]:
    """The Japanese, by sections."""
    return tomllib.loads(Path(__file__).with_name("ja.toml").read_text(encoding="utf-8"))
