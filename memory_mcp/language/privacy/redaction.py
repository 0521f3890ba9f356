"""Finds private data by the patterns of every kind, replaces it with placeholders, and counts what was replaced."""

import math
import re
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.language.privacy import personal_data, secrets

# A memory that contains flagged data gets this prefix and the kind as a tag, so that it can be found.
FLAG_PREFIX = "contains:"
# An integer this long may be a card or telephone number.
_PRIVATE_DIGITS = 10
# Few texts need a second pass; texts that people write never need a third.
_FURTHER_PASSES = 8

# A longer text, such as one in the metadata of an import, is read in pieces: each holds the interpreter for a tenth of a second.
PIECE_CHARACTERS = 200_000
_KEY_BEGINS, _KEY_ENDS = "-----BEGIN ", "-----END "

# Fields of an object that name what its other fields are.
_NAMING = frozenset({"name", "key", "field", "label", "title"})

# Each character maps to one character, so that offsets in the view are offsets in the text.
_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | dict.fromkeys(
    [0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "
)
# Placeholders contain words such as PHONE or KEY, which must not make the following number a finding.
_PLACEHOLDER = re.compile(rf"(?<=\[)REDACTED_(?:{'|'.join(map(str.upper, Privacy.model_fields))})(?=\])")
# Zero-width characters, soft hyphens, marks of direction and of byte order: they are invisible, and may be inside a secret.
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")

Span = tuple[int, int]

# Ordered by reliability: an earlier kind wins over a later one, so that a card number is not taken for a telephone number.
_SECRETS: Mapping[str, Callable[[str], Iterator[Span]]] = {
    "api_key": lambda text: chain(secrets.api_keys(text), personal_data.connection_passwords(text)),
}
_ADDRESSES: Mapping[str, Callable[[str], Iterator[Span]]] = {
    "url_credentials": personal_data.url_credentials,
    "email": personal_data.emails,
}
_NUMBERS: Mapping[str, Callable[[str], Iterator[Span]]] = {"credit_card": personal_data.credit_cards, "my_number": personal_data.my_numbers}
_NUMBERS_IN_RUNS: Mapping[str, Callable[[str, list[personal_data.Run]], Iterator[Span]]] = {
    "ssn": personal_data.social_security_numbers,
    "phone": personal_data.phones,
}
# What only looks like a kind. Found where no pattern of a kind finds something.
_UNCERTAIN: Mapping[str, Callable[[str], Iterator[Span]]] = {"api_key": secrets.memorable_passwords}
KINDS = (*_SECRETS, *_ADDRESSES, *_NUMBERS, *_NUMBERS_IN_RUNS, "ip_address")


# Names of speakers, fields and sessions come again with every message of a chat. Short texts that hold nothing private are not searched
# again.
SHORT_CHARACTERS, SHORT_TEXTS = 48, 4_096
_NOTHING_FOUND: set[tuple[frozenset[str], str]] = set()


def ascii_view(text: str) -> str:
    """The text as the patterns search it: full-width letters and digits in ASCII, with the words of placeholders blanked out; as long as the original."""
    view = text if text.isascii() else text.translate(_ASCII)
    return _PLACEHOLDER.sub(lambda match: "□" * len(match[0]), view) if "[REDACTED_" in view else view


def without_invisible(text: str) -> tuple[str, Sequence[int]]:
    """The text without invisible characters, and for each character its offset in the text (and one for the end)."""
    if text.isascii() or not _INVISIBLE.search(text):
        return text, range(len(text) + 1)
    offsets = [offset for offset, character in enumerate(text) if not _INVISIBLE.match(character)]
    return "".join(text[offset] for offset in offsets), [*offsets, len(text)]


@dataclass(frozen=True, slots=True)
class Finding:
    """text[start:end] is private data of this kind, or may be: what is not certain is flagged and never replaced."""

    kind: str
    start: int
    end: int
    certain: bool = True


def find(text: str, kinds: Collection[str]) -> list[Finding]:
    """The findings of these kinds, sorted and without overlaps."""
    visible, offsets = without_invisible(text)
    findings = list(_found(ascii_view(visible), kinds))
    if len(visible) < len(text):
        findings = [replace(finding, start=offsets[finding.start], end=offsets[finding.end - 1] + 1) for finding in findings]
    return _without_overlaps(findings) if len(findings) > 1 else findings


def _found(plain: str, kinds: Collection[str]) -> Iterator[Finding]:
    """The findings in a normalized text, overlaps included, the more reliable first."""
    may_hold_secret, has_number = secrets.may_be_in(plain), personal_data.has_number(plain)
    patterns = {**(_SECRETS if may_hold_secret else {}), **_ADDRESSES, **(_NUMBERS if has_number else {})}
    yield from (Finding(kind, *span) for kind, spans in patterns.items() if kind in kinds for span in spans(plain))
    if has_number and (runs := personal_data.runs(plain)):
        yield from (Finding(kind, *span) for kind, spans in _NUMBERS_IN_RUNS.items() if kind in kinds for span in spans(plain, runs))
    if "ip_address" in kinds:
        yield from (Finding("ip_address", *span) for span in personal_data.ip_addresses(plain))
    if may_hold_secret:
        yield from (Finding(kind, *span, certain=False) for kind, spans in _UNCERTAIN.items() if kind in kinds for span in spans(plain))


def forget_short_texts() -> None:
    """Forgets which short texts hold nothing, after a memory was erased for good."""
    _NOTHING_FOUND.clear()


def _find_once(text: str, kinds: frozenset[str]) -> list[Finding]:
    """As `find`, without searching a short text again that holds nothing."""
    if len(text) > SHORT_CHARACTERS:
        return find(text, kinds)
    if (kinds, text) in _NOTHING_FOUND:
        return []
    findings = find(text, kinds)
    if not findings:
        if len(_NOTHING_FOUND) >= SHORT_TEXTS:
            _NOTHING_FOUND.clear()
        _NOTHING_FOUND.add((kinds, text))
    return findings


def _without_overlaps(findings: list[Finding]) -> list[Finding]:
    """Drops findings that overlap an earlier one of the list, and sorts the rest by position."""
    starts: list[int] = []
    kept: dict[int, Finding] = {}
    for finding in findings:
        index = bisect_right(starts, finding.start)
        before = kept[starts[index - 1]] if index else None
        after = starts[index] if index < len(starts) else None
        if (before is None or before.end <= finding.start) and (after is None or finding.end <= after):
            insort(starts, finding.start)
            kept[finding.start] = finding
    return [kept[start] for start in starts]


def placeholder(kind: str) -> str:
    """The text that replaces private data of this kind."""
    return f"[REDACTED_{kind.upper()}]"


@lru_cache(maxsize=8)
def _looked_for(rules: Privacy) -> tuple[Mapping[str, str], frozenset[str]]:
    modes = {kind: mode for kind in KINDS if (mode := getattr(rules, kind)) != "off"}
    return modes, frozenset(modes)


@dataclass(slots=True)
class Redaction:
    """Redacts texts by one set of rules. Counts by kind, over all texts, what was `redacted` and what was only `flagged`."""

    rules: Privacy
    redacted: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    _modes: Mapping[str, str] = field(init=False)
    _kinds: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._modes, self._kinds = _looked_for(self.rules)

    @property
    def flags(self) -> tuple[str, ...]:
        """The tags that say what was flagged."""
        return tuple(f"{FLAG_PREFIX}{kind}" for kind in sorted(self.flagged))

    def text(self, text: str) -> str:
        """The text as it may be stored. Redacting a redacted text doesn't change it."""
        return text if not text or (self._kinds, text) in _NOTHING_FOUND else self._replaced(text, 0, self.flagged)

    def optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.text(text) for text in texts)

    def listed(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """The texts of a list, in which one may name the next: `password`, and then the password."""
        redacted = self.texts(texts)
        return tuple(self.after(before, text) for before, text in zip(("", *texts), redacted, strict=False))

    def after(self, before: str | None, text: str) -> str:
        """A redacted text without what is a secret because of the text `before` it."""
        is_named = before and text and secrets.names_secret(before)
        return self._replaced(f"{before}: {text}", len(before or "") + 2, None) if is_named else text

    def tree(self, value: Any) -> Any:
        """Redacts JSON: its strings, the names of its fields, and integers that are long enough to be private."""
        return self._tree(value, ())

    def _tree(self, value: Any, names: tuple[str, ...]) -> Any:
        match value:
            case str():
                return self.named(value, names)
            case bool():
                return value
            case int() | float() if _may_be_private(value):
                digits = str(int(value))
                redacted = self.named(digits, names)
                return value if redacted == digits else redacted
            case Mapping():
                shown = [self.text(str(name)) for name in value]
                outer = names[:1]
                if not _NAMING.isdisjoint(value):
                    outer += tuple(inner for name, inner in value.items() if name in _NAMING and isinstance(inner, str))
                return {
                    new: self._tree(inner, (str(name), *outer)) for new, (name, inner) in zip(_unique(shown), value.items(), strict=True)
                }
            case list() | tuple():
                return [self._tree(inner, names) for inner in value]
        return value

    def named(self, value: str, names: tuple[str, ...]) -> str:
        """Redacts the value of a field with the field's name before it, since a name such as `api_key` identifies the value.

        Further names are those of the object that the field is in: `{"password": {"value": …}}`, `{"name": "password", "value": …}`.
        """
        flagged: Counter[str] | None = self.flagged
        for name in names or ("",):
            prefix = f"{name}: " if name else ""
            if (self._kinds, prefix + value) not in _NOTHING_FOUND:
                value = self._replaced(prefix + value, len(prefix), flagged)
            flagged = None
        return value

    def _replaced(self, text: str, begin: int, flagged: Counter[str] | None) -> str:
        """Redacts until nothing changes: a pattern may match only after the text adjacent to it was replaced. Counts in `flagged`, if given."""
        if len(text) > PIECE_CHARACTERS:  # in one piece it would hold the interpreter for seconds
            return "".join(self._replaced(piece, 0 if index else begin, flagged) for index, piece in enumerate(_pieces(text)))
        redacted = self._replaced_once(text, begin, flagged)
        for _ in range(_FURTHER_PASSES):
            if redacted == text[begin:]:
                break
            text = text[:begin] + redacted
            redacted = self._replaced_once(text, begin, None)
        return redacted

    def _replaced_once(self, text: str, begin: int, flagged: Counter[str] | None) -> str:
        parts: list[str] = []
        offset = begin
        for finding in _find_once(text, self._kinds):
            if finding.start < begin:
                continue
            if self._modes[finding.kind] == "flag" or not finding.certain:
                if flagged is not None:
                    flagged[finding.kind] += 1
                continue
            self.redacted[finding.kind] += 1
            parts += [text[offset : finding.start], placeholder(finding.kind)]
            offset = finding.end
        return "".join([*parts, text[offset:]]) if parts else text[begin:]


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of at most `PIECE_CHARACTERS`, which end behind a line or a blank, and not within a key of several lines."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        last = start + PIECE_CHARACTERS
        begun = text.rfind(_KEY_BEGINS, start, last)
        whole = begun if begun > text.rfind(_KEY_ENDS, start, last) else last
        end = max(text.rfind("\n", start, whole), text.rfind(" ", start, whole)) + 1
        yield text[start : (end if end > start else last)]
        start = end if end > start else last
    yield text[start:]


def _may_be_private(number: float) -> bool:
    return abs(number) >= 10 ** (_PRIVATE_DIGITS - 1) and math.isfinite(number) and number == int(number)


def _unique(shown: Sequence[str]) -> Sequence[str]:
    """The redacted names of fields, each with a number if an earlier field has the same."""
    if len(set(shown)) == len(shown):
        return shown
    seen: Counter[str] = Counter()
    unique = []
    for name in shown:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def relations_redacted(relations: Sequence[StatedRelation], redaction: Redaction) -> tuple[StatedRelation, ...]:
    """The relations without private data."""
    return tuple(
        replace(
            relation,
            source=redaction.text(relation.source),
            relation=redaction.text(relation.relation),
            target=redaction.named(relation.target, (relation.relation,)),
        )
        for relation in relations
    )
