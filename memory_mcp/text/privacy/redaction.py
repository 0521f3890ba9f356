"""Putting placeholders in the place of what is private, and counting it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Stated
from memory_mcp.text.privacy.detection import KINDS, find

# A memory that holds something flagged carries this and the kind as a tag, so that it can be found.
FLAG_PREFIX = "contains:"
# A whole number this long may be a card or a telephone; a smaller one is a number.
_TELLING_DIGITS = 10
# Few texts need a second look, none that people write a third.
_FURTHER_LOOKS = 8


def placeholder(kind: str) -> str:
    """What stands where something of this kind stood."""
    return f"[REDACTED_{kind.upper()}]"


@dataclass(slots=True)
class Redaction:
    """Texts under one set of rules. Counts, over all of them, what was `redacted` and what was only `flagged`, by kind."""

    rules: Privacy
    redacted: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    _modes: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._modes = {kind: mode for kind in KINDS if (mode := getattr(self.rules, kind)) != "off"}

    def text(self, text: str) -> str:
        """The text as it may be stored. A text that has been through here comes out as it went in."""
        return self._replaced(text, 0)

    def optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.text(text) for text in texts)

    def tree(self, value: Any) -> Any:
        """JSON: the texts in it, the names of its fields, and whole numbers that are long enough to be somebody's."""
        return self._tree(value, "")

    def _tree(self, value: Any, name: str) -> Any:
        match value:
            case str():
                return self._named(value, name)
            case bool():
                return value
            case int() if abs(value) >= 10 ** (_TELLING_DIGITS - 1):
                digits = str(value)
                told = self._named(digits, name)
                return value if told == digits else told
            case Mapping():
                told_names = {each: self.text(str(each)) for each in value}
                return {_unused(told_names, each): self._tree(inner, str(each)) for each, inner in value.items()}
            case list() | tuple():
                return [self._tree(inner, name) for inner in value]
        return value

    def _named(self, value: str, name: str) -> str:
        """A field's value, with the field's name before it: `api_key` says what the value is."""
        begin = f"{name}: " if name else ""
        return self._replaced(begin + value, len(begin))

    def _replaced(self, text: str, begin: int) -> str:
        """Looks until there is nothing more: what stood glued to something that went is told from it only now."""
        told = self._once(text, begin, self.flagged)
        for _ in range(_FURTHER_LOOKS):
            if told == text[begin:]:
                break
            text = text[:begin] + told
            told = self._once(text, begin, Counter())
        return told

    def _once(self, text: str, begin: int, flagged: Counter[str]) -> str:
        parts: list[str] = []
        place = begin
        for finding in find(text, self._modes):
            if finding.start < begin:
                continue
            if self._modes[finding.kind] == "flag":
                flagged[finding.kind] += 1
                continue
            self.redacted[finding.kind] += 1
            parts += [text[place : finding.start], placeholder(finding.kind)]
            place = finding.end
        return "".join([*parts, text[place:]]) if parts else text[begin:]


def _unused(told: Mapping[Any, str], name: Any) -> str:
    """The told name of a field; of several that became the same, numbered from the second."""
    same = [each for each in told if told[each] == told[name]]
    place = same.index(name)
    return told[name] if place == 0 else f"{told[name]}_{place + 1}"


def relations_redacted(relations: Sequence[Stated], found: Redaction) -> tuple[Stated, ...]:
    """The relations as they may be kept."""
    return tuple(
        replace(one, source=found.text(one.source), relation=found.text(one.relation), target=found.text(one.target)) for one in relations
    )
