"""`memory-mcp organize`: lists proposals for tidying a persona's memories, merges memories, and undoes merges."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import AsJson, PersonaName, Url, command_line, connection, print_json
from memory_mcp.wording import sentence


def organize(
    merge: Annotated[list[str] | None, typer.Option("--merge", help="A key to merge; may be repeated.", metavar="KEY")] = None,
    into: Annotated[str | None, typer.Option("--into", help="The key to keep.", metavar="KEY")] = None,
    undo: Annotated[str | None, typer.Option("--undo", help="The operation_id of the merge to undo.", metavar="ID")] = None,
    unlink: Annotated[
        tuple[str, str] | None,
        typer.Option("--unlink", help="Take back that the first memory is newer than the second.", metavar="NEWER EARLIER"),
    ] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-n", min=1, max=50, help="How many of each kind to list.", metavar="N")] = 10,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List duplicates, low-value and faded memories and possible errors in the graph; merge memories; undo a merge."""
    server = connection(url, persona)
    if unlink:
        answer = server.post_json("/api/organize/unlink", dict(zip(("newer", "earlier"), unlink, strict=True)))
        if as_json:
            print_json(answer)
        else:
            tell("{} is no longer linked as newer than {}", unlink[0], unlink[1])
        return
    request = {name: value for name, value in (("merge", merge), ("into", into), ("undo", undo)) if value}
    answer = server.post_json("/api/organize", request) if request else server.get_json(f"/api/organize?top_k={top_k}")
    if as_json:
        print_json(answer)
    elif request:
        _show_outcomes(answer, url)
    else:
        _show_proposals(answer, url)


def _show_outcomes(answer: Mapping[str, Any], url: str | None) -> None:
    for outcome in answer["outcomes"]:
        reason = f" ({outcome['reason']})" if "reason" in outcome else ""
        typer.echo(f"{outcome['key']}: {worded(outcome['outcome'])}{reason}")
    if "operation_id" in answer and "undoes" not in answer:
        tell("undo it with: {}", _undo(answer, answer["operation_id"], url))


def _undo(answer: Mapping[str, Any], operation: str, url: str | None) -> str:
    return command_line("organize", "--undo", operation, persona=answer["persona"], url=url)


def _graph_findings(answer: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Possible errors in the graph: a heading for each kind, and a line for each finding."""
    counts = answer["counts"]
    return [
        (
            sentence("{} pairs may contradict each other:", counts["contradictions"]),
            ["  |  ".join(f"{memory['key']}  {memory['content']}" for memory in pair) for pair in answer["contradictions"]],
        ),
        (
            sentence("{} pairs of relations contradict each other:", counts["opposed_relations"]),
            ["  |  ".join(pair) for pair in answer["opposed_relations"]],
        ),
        (
            sentence("{} relations with little evidence:", counts["unsure_relations"]),
            [f"{relation['relation']}  ({relation['confidence']})" for relation in answer["unsure_relations"]],
        ),
        (sentence("{} names that no memory contains any more:", counts["orphans"]), list(answer["orphans"])),
    ]


def _show_proposals(answer: Mapping[str, Any], url: str | None) -> None:
    meaning = sentence("words and meaning" if answer["meaning"] else "words")
    tell("{}: {} of {} memories compared by {}", answer["persona"], answer["compared"], answer["of"], meaning)
    for group in answer["duplicates"]:
        typer.echo(f"\n{group['into']['key']}  {group['into']['content']}")
        for duplicate in group["merge"]:
            typer.echo(f"  {duplicate['key']}  {duplicate['content']}  ({worded(duplicate['why'])}, {duplicate['similarity']})")
    for name, words in (("low_value", "\n{} of low value:"), ("faded", "\n{} not used for a long time:")):
        if answer[name]:
            tell(words, answer["counts"][name])
            for memory in answer[name]:
                typer.echo(f"  {memory['key']}  {memory['content']}")
    for words, lines in _graph_findings(answer):
        if lines:
            typer.echo("\n".join(["", worded(words), *(f"  {line}" for line in lines)]))
    for merged in answer["merges"]:
        tell("\nmerged {}: {} into {}", merged["at"], len(merged["merge"]), merged["into"])
        tell("  undo it with: {}", _undo(answer, merged["operation_id"], url))
