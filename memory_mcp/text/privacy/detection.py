"""Detects private data in a text: runs the patterns of every kind and removes overlapping findings."""

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from memory_mcp.text.privacy import addresses, numbers, secrets
from memory_mcp.text.privacy.ascii_view import ascii_view

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """text[start:end] is private data of this kind."""

    kind: str
    start: int
    end: int


# Ordered by reliability: an earlier kind wins over a later one, so that a card number is not taken for a telephone number.
_TEXT_PATTERNS: Mapping[str, Callable[[str], Iterator[Span]]] = {
    "api_key": secrets.api_keys,
    "url_credentials": addresses.url_credentials,
    "email": addresses.emails,
}
_DIGIT_PATTERNS: Mapping[str, Callable[[str, list[numbers.Run]], Iterator[Span]]] = {
    "credit_card": numbers.credit_cards,
    "my_number": numbers.my_numbers,
    "phone": numbers.phones,
}
KINDS = (*_TEXT_PATTERNS, *_DIGIT_PATTERNS, "ip_address")


def find(text: str, kinds: Collection[str]) -> list[Finding]:
    """The findings of these kinds, sorted and without overlaps."""
    normalized = ascii_view(text)
    findings = [Finding(kind, *span) for kind, spans in _TEXT_PATTERNS.items() if kind in kinds for span in spans(normalized)]
    runs = numbers.runs(normalized)
    if runs:
        findings += [Finding(kind, *span) for kind, spans in _DIGIT_PATTERNS.items() if kind in kinds for span in spans(normalized, runs)]
    if "ip_address" in kinds:
        findings += [Finding("ip_address", *span) for span in addresses.ip_addresses(normalized)]
    return _without_overlaps(findings) if len(findings) > 1 else findings


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
