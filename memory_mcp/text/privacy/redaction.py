"""Replaces private data with placeholders, and counts what was replaced."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.text.privacy.detection import KINDS, find

# A memory that contains flagged data gets this prefix and the kind as a tag, so that it can be found.
FLAG_PREFIX = "contains:"
# An integer this long may be a card or telephone number.
_PRIVATE_DIGITS = 10
# Few texts need a second pass; texts that people write never need a third.
_FURTHER_PASSES = 8


def placeholder(kind: str) -> str:
    """The text that replaces private data of this kind."""
    return f"[REDACTED_{kind.upper()}]"


@dataclass(slots=True)
class Redaction:
    """Redacts texts by one set of rules. Counts by kind, over all texts, what was `redacted` and what was only `flagged`."""

    rules: Privacy
    redacted: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    _modes: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._modes = {kind: mode for kind in KINDS if (mode := getattr(self.rules, kind)) != "off"}

    def text(self, text: str) -> str:
        """The text as it may be stored. Redacting a redacted text doesn't change it."""
        return self._replaced(text, 0)

    def optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.text(text) for text in texts)

    def tree(self, value: Any) -> Any:
        """Redacts JSON: its strings, the names of its fields, and integers that are long enough to be private."""
        return self._tree(value, "")

    def _tree(self, value: Any, name: str) -> Any:
        match value:
            case str():
                return self._named(value, name)
            case bool():
                return value
            case int() if abs(value) >= 10 ** (_PRIVATE_DIGITS - 1):
                digits = str(value)
                redacted = self._named(digits, name)
                return value if redacted == digits else redacted
            case Mapping():
                names = {field_name: self.text(str(field_name)) for field_name in value}
                return {_unique(names, field_name): self._tree(inner, str(field_name)) for field_name, inner in value.items()}
            case list() | tuple():
                return [self._tree(inner, name) for inner in value]
        return value

    def _named(self, value: str, name: str) -> str:
        """Redacts the value of a field with the field's name before it, since a name such as `api_key` identifies the value."""
        prefix = f"{name}: " if name else ""
        return self._replaced(prefix + value, len(prefix))

    def _replaced(self, text: str, begin: int) -> str:
        """Redacts until nothing changes: a pattern may match only after the text adjacent to it was replaced."""
        redacted = self._replaced_once(text, begin, self.flagged)
        for _ in range(_FURTHER_PASSES):
            if redacted == text[begin:]:
                break
            text = text[:begin] + redacted
            redacted = self._replaced_once(text, begin, Counter())
        return redacted

    def _replaced_once(self, text: str, begin: int, flagged: Counter[str]) -> str:
        parts: list[str] = []
        offset = begin
        for finding in find(text, self._modes):
            if finding.start < begin:
                continue
            if self._modes[finding.kind] == "flag":
                flagged[finding.kind] += 1
                continue
            self.redacted[finding.kind] += 1
            parts += [text[offset : finding.start], placeholder(finding.kind)]
            offset = finding.end
        return "".join([*parts, text[offset:]]) if parts else text[begin:]


def _unique(redacted_names: Mapping[Any, str], name: Any) -> str:
    """The redacted name of a field, with a number if an earlier field has the same redacted name."""
    redacted = redacted_names[name]
    index = [other for other in redacted_names if redacted_names[other] == redacted].index(name)
    return redacted if index == 0 else f"{redacted}_{index + 1}"


def relations_redacted(relations: Sequence[StatedRelation], redaction: Redaction) -> tuple[StatedRelation, ...]:
    """The relations without private data."""
    return tuple(
        replace(
            relation,
            source=redaction.text(relation.source),
            relation=redaction.text(relation.relation),
            target=redaction.text(relation.target),
        )
        for relation in relations
    )
