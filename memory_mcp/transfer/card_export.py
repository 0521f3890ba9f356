"""Writes a persona as a character card (V3) with a lorebook: who it is, and its facts with what calls them. An import of the card gives them back.

A fact is called by its keys, if a lorebook brought it, else by its tags, else by the names in it; one without any of these would never be shown.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memory_mcp.transfer.formats.characters import BOOK, INFO, NUMBER
from memory_mcp.transfer.formats.lorebooks import FORM, KEYS, NAMES, OWN, OWN_FIELDS, keys_of, names_line
from memory_mcp.transfer.formats.obsidian_notes import links_in
from memory_mcp.transfer.non_memory_lines import CARD, CONTEXT

# The fields of an entry in SillyTavern's World Info that a card calls otherwise.
_OF_WORLD_INFO = {
    "keysecondary": "secondary_keys",
    "order": "insertion_order",
    "constant": "constant",
    "selective": "selective",
    "uid": "id",
}
# In the text of a card the quotation marks of a string have a backslash before them, so that this is in none.
_WRITTEN_NUMBER = re.compile(rf'\{{\s*"{NUMBER}":\s*"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"\s*\}}')
_TEXTS = ("creator", "character_version", "creator_notes", "system_prompt", "post_history_instructions", "mes_example")
_LISTS = ("tags", "alternate_greetings", "group_only_greetings")


@dataclass(frozen=True, slots=True)
class CharacterCard:
    """The text of a card, how many entries its lorebook has, and how many facts nothing calls."""

    text: str
    entries: int
    uncalled: int


def card(lines: Iterable[bytes | str], persona: str) -> CharacterCard:
    """The card of the JSON lines of an export with its context."""
    context: Mapping[str, Any] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    for row in map(json.loads, lines):
        context = row.get(CONTEXT, context)
        facts.pop(row.get("supersedes", ""), None)
        if row.get("kind") == "fact" and "deleted_at" not in row:
            facts[row["key"]] = row
    entries = [entry for row in facts.values() if (entry := _entry(row))]
    for number, entry in enumerate(entries):
        entry.setdefault("id", number)
    info, kept = context.get("persona_info", {}), context.get(CARD, {})
    fields = {theirs: info.get(ours, "") for theirs, ours in INFO.items() if theirs != "nickname" or info.get(ours)}
    data = {
        **dict.fromkeys(_TEXTS, ""),
        **{name: [] for name in _LISTS},
        "extensions": {},
        **kept.get("fields", {}),
        **fields,
        "name": info.get("name") or persona,
        BOOK: {"extensions": {}, **kept.get("book", {}), "entries": entries},
    }
    whole = {**kept.get("around", {}), "spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    text = _WRITTEN_NUMBER.sub(r"\1", json.dumps(whole, ensure_ascii=False, indent=2))
    return CharacterCard(text + "\n", len(entries), len(facts) - len(entries))


def _entry(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entry of a fact; None where nothing calls it."""
    brought = row.get("metadata", {}).get(FORM, {})
    entry = {_OF_WORLD_INFO.get(name, name): value for name, value in brought.get("entry", {}).items() if name not in {*KEYS, "disable"}}
    keys = keys_of(brought.get("entry", {})) or row.get("tags") or links_in(row["content"])
    if not keys and not brought:
        return None
    content = row["content"]
    for line in {names_line(keys, may_be_patterns=may_be) for may_be in (False, True)} - {""} if brought else ():
        if content.endswith(f"\n\n{line}"):
            content = content.removesuffix(line).rstrip()
    name = next((entry[name] for name in NAMES if entry.get(name)), "")
    own = {} if brought else {OWN: {field: row[field] for field in OWN_FIELDS if field in row}}
    usual = {"extensions": own, "insertion_order": 100, "use_regex": False, **({"comment": name} if name else {})}
    return {"keys": keys, **usual, **entry, "content": f"{brought.get('decorators', '')}{content}", "enabled": True}
