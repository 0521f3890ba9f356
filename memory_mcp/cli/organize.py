"""`memory-mcp organize`: what could be tidied in a persona's memory, merging on request, and undoing it."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli.options import AsJson, PersonaName, Url, connection


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(organize)


def organize(
    merge: Annotated[list[str] | None, typer.Option("--merge", help="A key to merge; may be repeated.", metavar="KEY")] = None,
    into: Annotated[str | None, typer.Option("--into", help="The key that stays.", metavar="KEY")] = None,
    undo: Annotated[str | None, typer.Option("--undo", help="The operation_id of a merge to take back.", metavar="ID")] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-n", min=1, max=50, help="How many of each kind to list.", metavar="N")] = 10,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List duplicates, empty talk, faded memories and what may be wrong with the graph; merge some into one; undo a merge."""
    there = connection(url, persona)
    asked = {name: value for name, value in (("merge", merge), ("into", into), ("undo", undo)) if value}
    answer = there.post_json("/api/organize", asked) if asked else there.get_json(f"/api/organize?top_k={top_k}")
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
    elif asked:
        _show_done(answer)
    else:
        _show_proposals(answer)


def _show_done(answer: Mapping[str, Any]) -> None:
    for outcome in answer["outcomes"]:
        reason = f" ({outcome['reason']})" if "reason" in outcome else ""
        typer.echo(f"{outcome['key']}: {outcome['outcome']}{reason}")
    if "operation_id" in answer and "undoes" not in answer:
        typer.echo(f"undo it with: memory-mcp organize --undo {answer['operation_id']}")


def _of_graph(answer: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """What may be wrong with the graph: of each kind a heading, and a line for each thing found."""
    counts = answer["counts"]
    return [
        (
            f"{counts['contradictions']} pairs may contradict each other:",
            ["  |  ".join(f"{one['key']}  {one['content']}" for one in pair) for pair in answer["contradictions"]],
        ),
        (
            f"{counts['opposed_relations']} pairs of relations do not go together:",
            ["  |  ".join(pair) for pair in answer["opposed_relations"]],
        ),
        (
            f"{counts['unsure_relations']} relations that little speaks for:",
            [f"{one['relation']}  ({one['confidence']})" for one in answer["unsure_relations"]],
        ),
        (f"{counts['orphans']} names that no memory holds any more:", list(answer["orphans"])),
    ]


def _show_proposals(answer: Mapping[str, Any]) -> None:
    meaning = "words and meaning" if answer["meaning"] else "words"
    typer.echo(f"{answer['persona']}: {answer['compared']} of {answer['of']} memories compared by {meaning}")
    for group in answer["duplicates"]:
        typer.echo(f"\n{group['into']['key']}  {group['into']['content']}")
        for alike in group["merge"]:
            typer.echo(f"  {alike['key']}  {alike['content']}  ({alike['why']}, {alike['similarity']})")
    for name, words in (("low_value", "say nothing by themselves"), ("faded", "were not touched for long")):
        if answer[name]:
            typer.echo(f"\n{answer['counts'][name]} {words}:")
            for found in answer[name]:
                typer.echo(f"  {found['key']}  {found['content']}")
    for words, lines in _of_graph(answer):
        if lines:
            typer.echo("\n".join(["", words, *(f"  {line}" for line in lines)]))
    for merged in answer["merges"]:
        typer.echo(f"\nmerged {merged['at']}: {len(merged['merge'])} into {merged['into']}; --undo {merged['operation_id']}")
