"""Reads what other programs learned: skillbooks of ACE (agentic-context-engine, schema 2 and before), and exports of claude-mem.

A skill is an experience, and its counters become judgements. A summary of claude-mem is an experience, an observation a fact.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from memory_mcp.language.labels import LABEL_LIMIT
from memory_mcp.store.experience_text import Experience
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, fields_of, memory_rows, moment, text_in
from memory_mcp.transfer.formats.json_stream import each_file, ends_in, walk
from memory_mcp.transfer.formats.playbook import experience_fields, verdicts
from memory_mcp.transfer.formats.recognition import JSON_SUFFIXES
from memory_mcp.transfer.formats.sources import Source, blocks

SKILLBOOK, CLAUDE_MEM = "skillbook", "claude-mem"
# The lists of claude-mem, which are read entry by entry.
_OPENED = frozenset({"summaries", "observations", "sessions", "prompts"})
_BEGINNING = "1970-01-01T00:00:00+00:00"


def is_skillbook(first: Mapping[str, Any]) -> bool:
    """Whether this is the JSON of a skillbook, or of a playbook, as it was called before."""
    return "next_id" in first and any(isinstance(first.get(name), dict) for name in ("skills", "bullets"))


def is_claude_mem(first: Mapping[str, Any]) -> bool:
    """Whether this is an export of claude-mem."""
    return isinstance(first.get("observations"), list) and isinstance(first.get("summaries"), list)


def read(source: Source, me: str | None) -> Iterator[ImportItem]:  # noqa: ARG001  neither has authors
    """Yields a row for each skill, summary and observation."""

    def lessons(name: str) -> Iterator[ImportItem]:
        numbers = Counter[str]()
        for path, value in walk(blocks(source, name), name, _OPENED):
            numbers[path] += 1
            if path in ("skills", "bullets"):
                yield from _skills(fields_of(value), name)
            elif path == "summaries[]":
                yield from _summary(fields_of(value), f"{name}, summary {numbers[path]}")
            elif path == "observations[]":
                yield from _observation(fields_of(value), f"{name}, observation {numbers[path]}")
            elif path in ("sessions[]", "prompts[]"):
                yield ImportItem(name, left_out=path.removesuffix("[]"))

    yield from each_file(source, lessons, ends_in(*JSON_SUFFIXES))


def _skills(skills: Mapping[str, Any], name: str) -> Iterator[ImportItem]:
    for id_, skill in skills.items():
        where = f"{name}, skill {id_}"
        if not isinstance(skill, dict):
            yield ImportItem(where, refused="It is no object.")
        elif skill.get("active") is False:
            yield ImportItem(where, left_out="inactive skills")
        else:
            yield from _skill(str(id_), skill, where)


def _skill(id_: str, skill: Mapping[str, Any], where: str) -> Iterator[ImportItem]:
    issue = text_in(skill.get("issue")) or text_in(skill.get("section"))
    insight = text_in(skill.get("insight")) or text_in(skill.get("content"))
    if not issue.strip():
        yield ImportItem(where, refused="It says no issue.")
        return
    at = moment(skill.get("updated_at")) or moment(skill.get("created_at")) or _BEGINNING
    counts = {verdict: skill.get(f"{name}_count", skill.get(name)) for verdict, name in (("helped", "helpful"), ("hurt", "harmful"))}
    keywords = skill.get("keywords")
    yield from memory_rows(
        where,
        SKILLBOOK,
        (id_, issue),
        **experience_fields(Experience(_on_one_line(issue), lesson=insight.strip())),
        created_at=moment(skill.get("created_at")),
        tags=keywords if isinstance(keywords, list) else [],
        feedback=verdicts(counts, at, SKILLBOOK),
        origin={"id": id_},
    )


def _summary(summary: Mapping[str, Any], where: str) -> Iterator[ImportItem]:
    request = text_in(summary.get("request"))
    learned = "\n".join(filter(None, (text_in(summary.get(part)).strip() for part in ("learned", "completed", "notes"))))
    if request.strip() and learned:
        fields = experience_fields(Experience(_on_one_line(request), lesson=learned))
        yield from memory_rows(where, CLAUDE_MEM, _identity("summary", summary), **fields, **_of_both(summary))
    else:
        yield ImportItem(where, left_out="summaries without a request or what was learned")


def _observation(observation: Mapping[str, Any], where: str) -> Iterator[ImportItem]:
    texts = [text_in(observation.get(part)).strip() for part in ("title", "subtitle", "narrative", "text")]
    content = "\n".join(dict.fromkeys(filter(None, texts)))
    if not content:
        yield ImportItem(where, refused="It has no text.")
        return
    category, identity = text_in(observation.get("type")).strip()[:LABEL_LIMIT], _identity("observation", observation)
    yield from memory_rows(where, CLAUDE_MEM, identity, content, kind="fact", category=category, **_of_both(observation))


def _identity(kind: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    return kind, str(entry.get("memory_session_id")), str(entry.get("id")), str(entry.get("created_at_epoch"))


def _of_both(entry: Mapping[str, Any]) -> dict[str, Any]:
    project = text_in(entry.get("project")).strip()
    return {
        "created_at": moment(entry.get("created_at_epoch")) or moment(entry.get("created_at")),
        "tags": [project] if project else [],
        "origin": {"session": text_in(entry.get("memory_session_id"))},
    }


def _on_one_line(text: str) -> str:
    return " ".join(import_rows.storable(text).split())
