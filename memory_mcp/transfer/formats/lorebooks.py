"""Reads lorebooks: texts about a world, each with the keys that call it. Each becomes a fact with its keys as tags, and as names of the graph.

SillyTavern's World Info, the books of character cards, and those of NovelAI, Agnai and RisuAI: all have entries with keys and a text.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any

from memory_mcp.language.labels import METADATA_LIMIT
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, objects, storable, text_in
from memory_mcp.transfer.formats.macros import with_names
from memory_mcp.wording import sentence

FORM = "lorebook"
# Where the programs have the keys, the text and the name of an entry.
KEYS, TEXTS, NAMES = ("keys", "key", "keywords"), ("content", "text", "entry"), ("comment", "name", "displayName")
# What an entry has under this name in its extensions if an export of this server wrote it: by these fields a fact is recognized.
OWN, OWN_FIELDS = "memory_mcp", ("source", "session_id", "occurred_at", "created_at")
_KEPT_LIMIT = METADATA_LIMIT - 2_000
_DECORATORS = re.compile(r"(?:@@[^\n]*+\n?)+")
_NO_NAME = frozenset("[]|#^\n")
_LONGEST_NAME, _MOST_NAMES = 100, 20
# What only a pattern has. Some programs say of all their entries that their keys may be patterns.
_OF_PATTERN = re.compile(r"\\|\$\Z|\(\?|[.)][*+?{]|\w\*|[a-z]\?")


def is_lorebook(first: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a lorebook: it has entries, and each of the first has keys and a text."""
    if first.get("spec") == "lorebook_v3":
        return isinstance(first.get("data"), dict)
    entries = entries_of(first)
    return bool(entries) and all(any(name in entry for name in KEYS) and any(name in entry for name in TEXTS) for entry in entries[:3])


def entries_of(book: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of a book, in a list or by their numbers; RisuAI calls them data."""
    listed = book.get("entries", book.get("data") if book.get("type") == "risu" else None)
    return objects(list(listed.values()) if isinstance(listed, dict) else listed)


def items(
    book: Mapping[str, Any], where: str, owner: str, user: str, character: str | None = None, id_: str = "", names: Set[str] = frozenset()
) -> Iterator[ImportItem]:
    """Yields a row for each entry of a book. It is identified by the id of the book, else the name of its `owner`, by its own name and its keys; once one of
    `names` stood for the id. `user` has the name of the user, `character` that of the character if it isn't the owner."""
    character = owner if character is None else character
    title = text_in(book.get("name")).strip() or owner
    seen = Counter[tuple[str, ...]]()
    for number, entry in enumerate(entries_of(book), start=1):
        place = sentence("{}, entry {}", where, number)
        decorators, text = split_decorators(first_text(entry, TEXTS))
        named = with_names(text, character, user).strip()
        if entry.get("enabled") is False or entry.get("disable") is True:
            yield ImportItem(place, left_out="disabled entries of a lorebook")
        elif not named:
            yield ImportItem(place, left_out="entries of a lorebook without text")
        elif own := _own_fields(entry):
            yield ImportItem(place, {"content": storable(text), "kind": "fact", "tags": import_rows.tags(keys_of(entry)), **own})
        else:
            called = (first_text(entry, NAMES), *keys_of(entry))
            identity = called if any(called) else (text,)
            seen[identity] += 1
            identity += (str(seen[identity]),) if seen[identity] > 1 else ()
            kept = {name: value for name, value in entry.items() if name not in TEXTS}
            if len(json.dumps(kept, ensure_ascii=False)) > _KEPT_LIMIT:
                yield ImportItem(place, left_out="settings of an entry that are too long")
                kept = {}
            keys = [with_names(key, character, user) for key in keys_of(entry)]
            yield from import_rows.memory_rows(
                place,
                FORM,
                (id_ or owner, *identity),
                "\n\n".join(filter(None, (named, names_line(keys, may_be_patterns=entry.get("use_regex") is True)))),
                source=title,
                kind="fact",
                tags=keys,
                metadata={FORM: {"entry": kept, **({"decorators": decorators} if decorators else {})}},
                origin={"book": title},
                former=[(FORM, name, *identity) for name in sorted(names)],
            )


def _own_fields(entry: Mapping[str, Any]) -> dict[str, str]:
    extensions = entry.get("extensions")
    own = extensions.get(OWN) if isinstance(extensions, dict) else None
    return {field: storable(own[field]) for field in OWN_FIELDS if isinstance(own.get(field), str)} if isinstance(own, dict) else {}


def keys_of(entry: Mapping[str, Any]) -> list[str]:
    """The keys of an entry: a list, or a text with commas between them."""
    value: Any = next((entry[name] for name in KEYS if entry.get(name)), [])
    keys = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [key.strip() for key in keys if isinstance(key, str) and key.strip()]


def names_line(keys: list[str], *, may_be_patterns: bool = False) -> str:
    """The keys as names of the graph, [[灯台]] [[lighthouse]]; those that are patterns, such as /light.*/i, are none."""
    names = [key for key in map(storable, keys) if len(key) <= _LONGEST_NAME and not key.startswith("/") and _NO_NAME.isdisjoint(key)]
    names = [name for name in names if not (may_be_patterns and _OF_PATTERN.search(name))]
    return " ".join(f"[[{name}]]" for name in names[:_MOST_NAMES])


def first_text(entry: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of these fields that has a text."""
    return next((text for name in names if (text := text_in(entry.get(name))).strip()), "")


def split_decorators(text: str) -> tuple[str, str]:
    """The lines with which an entry begins that say where it is put (@@depth 4), and its text."""
    decorators = _DECORATORS.match(text)
    return (text[: decorators.end()], text[decorators.end() :]) if decorators else ("", text)
