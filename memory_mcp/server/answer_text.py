"""A tool's answer as text: what a model needs of the structured answer, in as few tokens as it takes to say it.

A host gives its model either the text or the structured answer, so both must be enough by themselves. An answer without memories stays
JSON.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from memory_mcp.language.budget import estimate_tokens

MEMORY_LISTS = ("hits", "similar")
# What only programs can use, of an answer and of a memory in it.
_FOR_PROGRAMS = frozenset(
    "mode reranked index_lag indexed superseded in_trash last_conversation_time score session_id revision supersedes pool".split()
)
# The fields at the beginning of a memory's line, without their names.
_UNNAMED = frozenset("key content _source occurred_at created_at upcoming_on ago source tags".split())
_SAID = {"superseded_by": "replaced by"}
# The units of a distance at which the day of the week says something.
_DAYS_AWAY = ("日", "day", "tomorrow")


def answer_text(answer: Mapping[str, Any]) -> str:
    """A line for each field that is neither empty nor 0 nor false, how sure the answer is first; then one for each memory."""
    if not any(name in answer for name in MEMORY_LISTS):
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    related = answer.get("related", ()) if "similar" in answer else ()  # of relate it names relations
    fields = {
        name: value
        for name, value in sorted(answer.items(), key=lambda field: field[0] != "confidence")
        if name not in (*MEMORY_LISTS, *(["related"] if related else [])) and name not in _FOR_PROGRAMS and value
    }
    lines = [f"{name}: {moment_text(value, with_weekday=True) if name == 'now' else _words(value)}" for name, value in fields.items()]
    lines += [memory_line(memory) for name in MEMORY_LISTS for memory in answer.get(name, ())]
    lines += [f"related {memory_line(memory)}" for memory in related]
    return "\n".join(lines if answer.get("hits", lines) else [*lines, "hits: none"])


def tokens_of(text: str) -> int:
    """How many tokens a text costs a model, as budgets count them."""
    return estimate_tokens(text)


def memory_line(memory: Mapping[str, Any]) -> str:
    """A memory as its key, its time, who said it, its tags and further fields, and its text.

    Further lines of it are indented, so that it can't look like another one.
    """
    dropped = _UNNAMED | (_FOR_PROGRAMS if "why" not in memory else {"parts"})
    layer, times = memory.get("_source"), _times(memory)
    known = [
        " ".join(filter(None, (layer, next(times, None)))),
        *times,
        memory.get("source"),
        " ".join(f"#{tag}" for tag in memory.get("tags", ())),
        *(_named(name, value) for name, value in memory.items() if name not in dropped and not _is_usual(name, value, layer)),
    ]
    return f"{memory['key']} {', '.join(_indented(part) for part in known if part)}: {_indented(memory['content'])}"


def _times(memory: Mapping[str, Any]) -> Iterator[str]:
    """When it is next, if it is shown for that; when it happened, and how long ago; when it was told, if that was another day."""
    happened, stored, ago, next_on = (memory.get(name, "") for name in ("occurred_at", "created_at", "ago", "upcoming_on"))
    is_near = any(unit in ago for unit in _DAYS_AWAY)
    if next_on and next_on != happened[:10]:
        yield f"on {moment_text(next_on, with_weekday=True)}"
    if happened:
        yield f"{moment_text(happened, with_weekday=is_near)} {ago}".rstrip()
    if other := happened or next_on:
        if stored and stored[:10] != other[:10]:  # the year is that of the date before
            yield f"told {stored[5:10] if stored[:4] == other[:4] else stored[:10]}"
    elif stored:
        yield f"{moment_text(stored[:10], with_weekday=is_near)} {ago}".rstrip()


def moment_text(moment: str, *, with_weekday: bool = False) -> str:
    """An ISO time as its date, and its time of day to the minute if it has one."""
    day, _, time = moment.partition("T")
    weekday = f" {date.fromisoformat(day):%a}" if with_weekday else ""
    return f"{day}{weekday}" if time.startswith("00:00:00") or not time else f"{day}{weekday} {time[:5]}"


def _is_usual(name: str, value: Any, layer: str | None) -> bool:
    """True for what most memories have alike, or all of the layer."""
    return (name == "kind" and value in ("fact", "conversation", layer)) or (name == "importance" and layer == "core")


def _named(name: str, value: Any) -> str:
    if value is True:
        return name
    if name.endswith("_at"):
        return f"{name.removesuffix('_at')} {moment_text(value) if name == 'expires_at' else value[:10]}"
    return f"{_SAID.get(name, name.removesuffix('_id'))} {_words(value)}"


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
