"""Looks for private data in what is stored: what was replaced by placeholders, and what the rules of today find."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memory_mcp.domain import Memory
from memory_mcp.language.privacy.redaction import KINDS, find, placeholder

# How many characters of a finding are shown; none of a finding shorter than twice that.
SHOWN_CHARACTERS = 2

_PLACEHOLDERS: Mapping[str, str] = {placeholder(kind): kind for kind in KINDS}
_PLACEHOLDER = re.compile("|".join(map(re.escape, _PLACEHOLDERS)))


@dataclass(frozen=True, slots=True)
class PrivateData:
    """The private data of one kind in a memory: how often it occurs, and the first characters of the first occurrence. `how`: replaced by a
    placeholder, stored as it is, or stored but not certainly of this kind."""

    kind: str
    how: Literal["replaced", "stored", "uncertain"]
    count: int
    sample: str = ""


def private_data(memory: Memory) -> list[PrivateData]:
    """What a memory holds, of every kind, whatever config.json sets for it."""
    text = "\n".join(_texts(memory))
    counts: dict[tuple[str, Literal["replaced", "stored", "uncertain"]], tuple[int, str]] = {}
    for match in _PLACEHOLDER.finditer(text):
        kind = _PLACEHOLDERS[match[0]]
        counts[kind, "replaced"] = (counts.get((kind, "replaced"), (0, ""))[0] + 1, "")
    for finding in find(text, KINDS):
        how: Literal["stored", "uncertain"] = "stored" if finding.certain else "uncertain"
        count, sample = counts.get((finding.kind, how), (0, ""))
        counts[finding.kind, how] = (count + 1, sample or masked(text[finding.start : finding.end]))
    return [PrivateData(kind, how, count, sample) for (kind, how), (count, sample) in counts.items()]


def masked(text: str) -> str:
    """The first characters, so that its owner recognizes it."""
    shown = text[:SHOWN_CHARACTERS] if len(text) >= 2 * SHOWN_CHARACTERS else ""
    return f"{shown}…"


def _texts(memory: Memory) -> Iterator[str]:
    yield memory.content
    yield from (text for text in (memory.source, memory.session_id, memory.category) if text)
    yield from memory.tags
    yield from memory.questions
    yield from memory.state.values()
    yield from leaves(memory.metadata)


def leaves(tree: Any, name: str = "") -> Iterator[str]:
    """The texts and numbers in an object, each after its name: 「password: …」 is found by that."""
    match tree:
        case Mapping():
            for inner, value in tree.items():
                yield from leaves(value, str(inner))
        case list() | tuple():
            for value in tree:
                yield from leaves(value, name)
        case bool() | None:
            return
        case _:
            yield f"{name}: {tree}"
