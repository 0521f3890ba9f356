"""Everything private in a text, kind by kind, none inside another."""

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from memory_mcp.text.privacy import addresses, numbers, secrets
from memory_mcp.text.privacy.ascii_view import shadow

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """text[start:end] is of this kind."""

    kind: str
    start: int
    end: int


# The surer comes first, and what it took is not looked at again: a card is no telephone number.
_BY_TEXT: Mapping[str, Callable[[str], Iterator[Span]]] = {
    "api_key": secrets.api_keys,
    "url_credentials": addresses.url_credentials,
    "email": addresses.emails,
}
_BY_DIGITS: Mapping[str, Callable[[str, list[numbers.Run]], Iterator[Span]]] = {
    "credit_card": numbers.credit_cards,
    "my_number": numbers.my_numbers,
    "phone": numbers.phones,
}
KINDS = (*_BY_TEXT, *_BY_DIGITS, "ip_address")


def find(text: str, kinds: Collection[str]) -> list[Finding]:
    """What there is of these kinds, in the order of the text."""
    read = shadow(text)
    found = [Finding(kind, *span) for kind, look in _BY_TEXT.items() if kind in kinds for span in look(read)]
    runs = numbers.runs(read)
    if runs:
        found += [Finding(kind, *span) for kind, look in _BY_DIGITS.items() if kind in kinds for span in look(read, runs)]
    if "ip_address" in kinds:
        found += [Finding("ip_address", *span) for span in addresses.ip_addresses(read)]
    return _apart(found) if len(found) > 1 else found


def _apart(found: list[Finding]) -> list[Finding]:
    """Without what overlaps with something that comes before it in the list; by place."""
    starts: list[int] = []
    kept: dict[int, Finding] = {}
    for finding in found:
        place = bisect_right(starts, finding.start)
        before = kept[starts[place - 1]] if place else None
        after = starts[place] if place < len(starts) else None
        if (before is None or before.end <= finding.start) and (after is None or finding.end <= after):
            insort(starts, finding.start)
            kept[finding.start] = finding
    return [kept[start] for start in starts]
