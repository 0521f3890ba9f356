"""Commands that call a running server about memories: `remember`, `recall`, `recent`, `context`, `expire-session` and `personas`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli.japanese import named, named_counts, tell, worded
from memory_mcp.cli.options import AsJson, PersonaName, Url, connection, end_with_json, memories_in_words
from memory_mcp.dates.format import NO_MINUTE
from memory_mcp.domain import KINDS, MODES
from memory_mcp.wording import clauses, sentence

Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.", metavar="TAG")]
Importance = Annotated[float | None, typer.Option(min=0, max=1, help="How important it is, from 0 to 1; 0.5 is ordinary.", metavar="0..1")]
Count = Annotated[int | None, typer.Option("--top-k", "-n", min=1, max=50, help="How many memories.", metavar="N")]


def remember(
    text: Annotated[str, typer.Argument(help="The text to remember.", metavar="TEXT")],
    persona: PersonaName = None,
    source: Annotated[str | None, typer.Option(help="Who said it.", metavar="NAME")] = None,
    occurred_at: Annotated[str | None, typer.Option(help="When it happened: 2025-10-17, 昨日, 3 days ago.", metavar="WHEN")] = None,
    tag: Tags = None,
    importance: Importance = None,
    category: Annotated[str | None, typer.Option(help="The category of the memory.", metavar="NAME")] = None,
    privacy_level: Annotated[str | None, typer.Option(help="public, internal, private or secret.", metavar="LEVEL")] = None,
    expires: Annotated[str | None, typer.Option(help="Forget it then: 2025-10-17, 来週, 30d.", metavar="WHEN")] = None,
    supersedes: Annotated[
        str | None, typer.Option(help="The key of the memory that it replaces, because the world has changed.", metavar="KEY")
    ] = None,
    pool: Annotated[str | None, typer.Option(help="Share it in this pool, to which the persona writes.", metavar="NAME")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Store a memory."""
    arguments = {"content": text, "source": source, "occurred_at": occurred_at, "tags": tag, "importance": importance}
    arguments |= {"category": category, "privacy_level": privacy_level, "expires_at": expires, "supersedes": supersedes, "pool": pool}
    answer = connection(url, persona).post_json("/api/memories", arguments)
    end_with_json(answer, as_json)
    tell("{}: {} as {}", answer["persona"], sentence("stored") if answer["stored"] else "known already", answer["key"])
    if answer.get("new_persona"):
        tell("  {}", _with_near("this persona was created", answer))
    for field in ("occurred_at", "expires_at"):
        if moment := answer.get(field):
            tell("  {} at {}", sentence(field.removesuffix("_at")), moment)
    print_private(answer)
    for similar in answer.get("similar", []):
        tell("  similar to {}: {}", similar["key"], similar["content"])
    for near in answer.get("related", []):
        tell("  related to {}: {}", near["key"], near["content"])


def recall(
    query: Annotated[str, typer.Argument(help="A question or words; none for the latest that pass the filters.", metavar="QUERY")] = "",
    persona: PersonaName = None,
    top_k: Count = None,
    when: Annotated[str | None, typer.Option(help="2025-10-01..2025-10-17, a day, or 先週.", metavar="RANGE")] = None,
    tag: Tags = None,
    mode: Annotated[str | None, typer.Option(help=f"{', '.join(MODES)}. Default: auto.", metavar="MODE")] = None,
    session: Annotated[str | None, typer.Option(help="Only of this conversation.", metavar="ID")] = None,
    kind: Annotated[str | None, typer.Option(help=f"Only {', '.join(KINDS)}.", metavar="KIND")] = None,
    source: Annotated[str | None, typer.Option(help="Only what this one said.", metavar="NAME")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Search a persona's memories. Without a query: the latest."""
    mode = mode or (None if query.strip() else "recent")
    arguments = {"query": query, "top_k": top_k, "date_range": when, "tags": tag, "mode": mode}
    arguments |= {"session_id": session, "kind": kind, "source": source}
    answer = connection(url, persona).get_json("/api/recall", **arguments)
    end_with_json(answer, as_json)
    for rank, hit in enumerate(answer["hits"], start=1):
        typer.echo(_format_hit(f"{rank}.", hit))
    for relation in answer.get("relations", []):
        typer.echo(f"   {relation}")
    typer.secho(_summary(answer), err=True, dim=True)


def recent(persona: PersonaName = None, top_k: Count = None, url: Url = None, as_json: AsJson = False) -> None:
    """List the latest memories."""
    recall("", persona, top_k, mode="recent", url=url, as_json=as_json)


def context(
    query: Annotated[str, typer.Argument(help="The topic at hand.", metavar="TOPIC")] = "",
    persona: PersonaName = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="How many tokens the answer may have.", metavar="N")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show what a model is told at the beginning of a conversation."""
    answer = connection(url, persona).get_json("/api/context", query=query, max_tokens=max_tokens)
    end_with_json(answer, as_json)
    tell("{}: {}", answer["persona"], memories_in_words(answer["memories"]))
    if last := answer.get("last_conversation_time"):
        since = answer["since_last_conversation"]
        tell("last conversation: {} ({})", last, worded("just now") if since in NO_MINUTE.values() else since)
    for name in ("persona_info", "user_info", "state"):
        if fields := answer.get(name):
            typer.echo(f"{worded(name)}: {', '.join(f'{field} {value}' for field, value in fields.items())}")
    for hit in answer["hits"]:
        typer.echo(_format_hit(worded(f"[{hit['_source']}]"), hit))
    if answer.get("new_persona"):
        tell(_with_near("this persona does not exist yet", answer), err=True, dim=True)


def expire_session(
    session: Annotated[str, typer.Argument(help="The session_id.", metavar="SESSION")],
    when: Annotated[str, typer.Argument(help="2025-10-17, 来週, 30d, or never.", metavar="WHEN")],
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Set when all memories that a conversation has now expire."""
    answer = connection(url, persona).post_json("/api/session/expire", {"session_id": session, "expires_at": when})
    end_with_json(answer, as_json)
    until = sentence("expiring at {}", answer["expires_at"]) if "expires_at" in answer else "never expiring"
    tell("{}: {} of {}, {}", answer["persona"], memories_in_words(answer["memories"]), answer["session_id"], until)


def personas(url: Url = None, as_json: AsJson = False) -> None:
    """List the personas of a server."""
    server = connection(url, None)
    answer = page = server.get_json("/api/personas")
    while "next" in page:
        page = server.get_json("/api/personas", after=page["next"])
        answer = {**page, "personas": [*answer["personas"], *page["personas"]]}
    end_with_json(answer, as_json)
    # Imported here: only tables need rich.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(*map(worded, ("persona", "memories", "replaced", "in the trash")), box=None)
    for entry in answer["personas"]:
        counts = [str(entry.get(name, "?")) for name in ("memories", "superseded", "in_trash")]
        table.add_row(Text(entry["name"]), *counts)
    Console().print(table if answer["personas"] else worded("There are no personas yet. Storing a memory creates one."))
    if cell := answer.get("cell"):
        tell("These are the personas of cell {} of {} only.", cell["index"], cell["of"])
    for entry in answer["personas"]:
        if "error" in entry:
            typer.echo(f"{entry['name']}: {entry['error']}", err=True)


def _with_near(is_new: str, answer: Mapping[str, Any]) -> str:
    """A sentence that this persona is new, with those that may be meant."""
    suggestions = ", ".join(answer.get("did_you_mean", []))
    return clauses([is_new, sentence("did you mean {}?", suggestions)]) if suggestions else is_new


def print_private(answer: Mapping[str, Any]) -> None:
    """Prints how much private data was replaced or flagged, by kind."""
    for action in ("redacted", "flagged"):
        if kinds := answer.get(action):
            tell("  {}: {}", sentence(action), named_counts("data", kinds))


def _format_hit(mark: str, hit: Mapping[str, Any]) -> str:
    content = f"{hit['source']}: {hit['content']}" if hit.get("source") else hit["content"]
    score = worded("score {}", f"{hit['score']:.2f}") if "score" in hit else None
    upcoming = worded("upcoming on {}", hit["upcoming_on"]) if "upcoming_on" in hit else None
    judged = named("verdict", hit["judged"]) if "judged" in hit else None
    facts = [hit.get("occurred_at") or hit.get("created_at"), hit.get("ago"), upcoming, score, judged, hit["key"]]
    tags = "".join(f" #{tag}" for tag in hit.get("tags", []))
    return f"{mark} {content}\n   {' · '.join(fact for fact in facts if fact)}{tags}"


def _summary(answer: Mapping[str, Any]) -> str:
    """One line on the answer: the persona, the search mode, and the steps of the configured pipeline that were skipped."""
    parts: list[str] = [
        sentence("{}: {} hit(s), {} more", answer["persona"], len(answer["hits"]), answer.get("more", 0)),
        sentence("mode {}", named("mode", answer["mode"])),
    ]
    if answer.get("degraded"):
        parts.append(sentence("degraded: {}", ", ".join(named("degraded", reason) for reason in answer["degraded"])))
    if answer.get("embedder"):
        parts.append(sentence("by {}", answer["embedder"]))
    if answer.get("remedy"):
        parts.append(sentence("for search by meaning: {}", answer["remedy"]))
    if answer.get("unmatched"):
        parts.append(sentence("in no memory: {}", ", ".join(answer["unmatched"])))
    if answer.get("new_persona"):
        parts.append(_with_near("this persona does not exist yet", answer))
    return " · ".join(map(worded, parts))
