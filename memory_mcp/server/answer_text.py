"""A tool's answer as text: the contents of the structured answer, in as few tokens as a model needs to read it.

A host gives its model either the text or the structured answer, so both must be enough by themselves. An answer without memories stays JSON.
"""

import json
from collections.abc import Mapping
from typing import Any

from memory_mcp.language.budget import estimate_tokens

MEMORY_LISTS = ("hits", "similar")
# The fields at the beginning of a memory's line, without their names.
_UNNAMED = ("key", "content", "score", "_source", "occurred_at", "created_at", "ago", "source", "tags")


def answer_text(answer: Mapping[str, Any]) -> str:
    """A line for each field that is neither empty nor 0 nor false, then one for each memory."""
    if not any(name in answer for name in MEMORY_LISTS):
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    fields = {name: value for name, value in answer.items() if name not in MEMORY_LISTS and value}
    lines = [f"{name}: {_words(value)}" for name, value in fields.items()]
    lines += [memory_line(memory) for name in MEMORY_LISTS for memory in answer.get(name, ())]
    return "\n".join(lines if answer.get("hits", lines) else [*lines, "hits: none"])


def tokens_of(text: str) -> int:
    """How many tokens a text costs a model, as budgets count them."""
    return estimate_tokens(text)


def memory_line(memory: Mapping[str, Any]) -> str:
    """A memory as its key and score, its time and source, its further fields, and its text.

    Further lines of it are indented, so that it can't look like another one.
    """
    happened, stored = memory.get("occurred_at"), memory.get("created_at")
    when = moment_text(happened) if happened else stored and stored.partition("T")[0]
    score = _words(memory["score"]) if "score" in memory else None
    known = [
        " ".join(filter(None, (score, memory.get("_source"), when, memory.get("ago")))),
        f"told {stored[:10]}" if happened and stored and stored[:10] != happened[:10] else None,
        memory.get("source"),
        " ".join(f"#{tag}" for tag in memory.get("tags", ())),
        *(_named(name, value) for name, value in memory.items() if name not in _UNNAMED),
    ]
    return f"{memory['key']} {', '.join(_indented(part) for part in known if part)}: {_indented(memory['content'])}"


def moment_text(moment: str) -> str:
    """An ISO time as its date, and its time of day to the minute if it has one."""
    date, _, time = moment.partition("T")
    return date if time.startswith("00:00:00") or not time else f"{date} {time[:5]}"


def _named(name: str, value: Any) -> str:
    if value is True:
        return name
    if name.endswith("_at"):
        return f"{name.removesuffix('_at')} {moment_text(value)}"
    return f"{name.removesuffix('_id')} {_words(value)}"


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        if any(isinstance(part, Mapping | list) for part in value.values()):
            return json.dumps(value, ensure_ascii=False)
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return "; ".join(map(_words, value))
    if value is True:
        return "yes"
    return f"{value:.3g}" if isinstance(value, float) else _indented(str(value))


def _indented(text: str) -> str:
    return "\n  ".join(text.splitlines())
