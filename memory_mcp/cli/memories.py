"""Commands that ask a running server: `remember`, `recall`, `personas`, and the bridge `stdio`."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli.options import AsJson, PersonaName, Url, connection
from memory_mcp.domain import MODES

Tags = Annotated[list[str] | None, typer.Option("--tag", help="May be repeated.", metavar="TAG")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (remember, recall, personas, stdio):
        app.command()(command)


def remember(
    text: Annotated[str, typer.Argument(help="What is to be remembered.", metavar="TEXT")],
    persona: PersonaName = None,
    source: Annotated[str | None, typer.Option(help="Who said it.", metavar="NAME")] = None,
    occurred_at: Annotated[str | None, typer.Option(help="When it happened: 2025-10-17, 昨日, 3 days ago.", metavar="WHEN")] = None,
    tag: Tags = None,
    importance: Annotated[float | None, typer.Option(min=0, max=1, metavar="0..1")] = None,
    category: Annotated[str | None, typer.Option(help="What kind of thing it is about.", metavar="NAME")] = None,
    privacy_level: Annotated[str | None, typer.Option(help="public, internal, private or secret.", metavar="LEVEL")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Store a memory."""
    told = {"content": text, "source": source, "occurred_at": occurred_at, "tags": tag, "importance": importance}
    told |= {"category": category, "privacy_level": privacy_level}
    answer = connection(url, persona).call_tool("remember", told)
    if as_json:
        _print_json(answer)
        return
    typer.echo(f"{answer['persona']}: {'stored' if answer['stored'] else 'known already'} as {answer['key']}")
    if understood := answer.get("occurred_at"):
        typer.echo(f"  occurred at {understood}")
    for what in ("redacted", "flagged"):
        if found := answer.get(what):
            typer.echo(f"  {what}: {', '.join(f'{count} {kind}' for kind, count in found.items())}")
    for similar in answer.get("similar", []):
        typer.echo(f"  much like {similar['key']}: {similar['content']}")


def recall(
    query: Annotated[str, typer.Argument(help="A question or words.", metavar="QUERY")],
    persona: PersonaName = None,
    top_k: Annotated[int | None, typer.Option("--top-k", "-n", min=1, max=50, help="How many memories.", metavar="N")] = None,
    when: Annotated[str | None, typer.Option(help="2025-10-01..2025-10-17, a day, or 先週.", metavar="RANGE")] = None,
    tag: Tags = None,
    mode: Annotated[str | None, typer.Option(help=f"{', '.join(MODES)}. Default: auto.", metavar="MODE")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Search a persona's memories."""
    asked = {"query": query, "top_k": top_k, "date_range": when, "tags": tag, "mode": mode}
    answer = connection(url, persona).call_tool("recall", asked)
    if as_json:
        _print_json(answer)
        return
    for place, hit in enumerate(answer["hits"], start=1):
        typer.echo(_shown(place, hit))
    for relation in answer.get("relations", []):
        typer.echo(f"   {relation}")
    typer.secho(_summary(answer), err=True, dim=True)


def personas(url: Url = None, as_json: AsJson = False) -> None:
    """List the personas of a server."""
    answer = connection(url, None).get_json("/api/personas")
    if as_json:
        _print_json(answer)
        return
    # Only tables need it.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table("persona", "memories", "replaced", "in the trash", box=None)
    for found in answer["personas"]:
        counts = [str(found.get(name, "?")) for name in ("memories", "superseded", "in_trash")]
        table.add_row(Text(found["name"]), *counts)
    Console().print(table if answer["personas"] else "no persona yet: the first memory that is stored creates one")
    for found in answer["personas"]:
        if "error" in found:
            typer.echo(f"{found['name']}: {found['error']}", err=True)


def stdio(persona: PersonaName = None, url: Url = None) -> None:
    """Be an MCP server on stdin and stdout, for hosts that speak nothing else, and pass everything to the running one."""
    there = connection(url, persona)
    # The proxy takes 2 s to import.
    from memory_mcp.client.bridge import run  # noqa: PLC0415

    run(there)


def _shown(place: int, hit: Mapping[str, Any]) -> str:
    said = f"{hit['source']}: {hit['content']}" if hit.get("source") else hit["content"]
    facts = [hit.get("occurred_at") or hit.get("created_at"), hit.get("ago"), f"score {hit.get('score', 0):.2f}", hit["key"]]
    tags = "".join(f" #{tag}" for tag in hit.get("tags", []))
    return f"{place}. {said}\n   {' · '.join(fact for fact in facts if fact)}{tags}"


def _summary(answer: Mapping[str, Any]) -> str:
    """Whose memory answered, how, and what was missing from the configured pipeline."""
    parts = [f"{answer['persona']}: {len(answer['hits'])} hit(s), {answer.get('more', 0)} more", f"mode {answer['mode']}"]
    if answer.get("degraded"):
        parts.append(f"degraded: {', '.join(answer['degraded'])}")
    if answer.get("new_persona"):
        near = ", ".join(answer.get("did_you_mean", []))
        parts.append(f"this persona does not exist yet; did you mean {near}?" if near else "this persona does not exist yet")
    return " · ".join(parts)


def _print_json(answer: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
