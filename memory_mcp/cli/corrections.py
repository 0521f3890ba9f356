"""`memory-mcp revise`, `forget` and `history`: correct a memory on the running server, move some to the trash, show or restore earlier texts of one."""

from typing import Annotated

import typer

from memory_mcp.cli.japanese import named, tell, worded
from memory_mcp.cli.memories import Importance, Tags, print_private
from memory_mcp.cli.options import AsJson, PersonaName, Url, command_line, connection, end_with_json, print_json
from memory_mcp.wording import sentence

Reason = Annotated[str | None, typer.Option(help="Why; kept in its history.", metavar="TEXT")]


def revise(
    key: Annotated[str, typer.Argument(help="The key of the memory.", metavar="KEY")],
    text: Annotated[str | None, typer.Argument(help="Its new text.", metavar="TEXT")] = None,
    restore: Annotated[bool, typer.Option("--restore", help="Bring it back from the trash.")] = False,
    tag: Tags = None,
    importance: Importance = None,
    category: Annotated[str | None, typer.Option(help="The category of the memory.", metavar="NAME")] = None,
    privacy_level: Annotated[str | None, typer.Option(help="public, internal, private or secret.", metavar="LEVEL")] = None,
    expires: Annotated[str | None, typer.Option(help="Forget it then: 2025-10-17, 来週, 30d, or never.", metavar="WHEN")] = None,
    reason: Reason = None,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Correct a memory that was wrong from the start. Its earlier text is kept; tags replace those that it has.

    If the world has changed instead: `memory-mcp remember --supersedes KEY TEXT`.
    """
    changes = {"content": text, "restore": restore or None, "tags": tag, "importance": importance, "category": category}
    changes |= {"privacy_level": privacy_level, "expires_at": expires, "reason": reason}
    answer = connection(url, persona).patch_json("/api/memory", {"key": key, **changes})
    end_with_json(answer, as_json)
    happened = "{}: {} is back from the trash, revision {}" if restore else "{}: {} is revision {}"
    tell(happened, answer["persona"], answer["key"], answer["revision"])
    typer.echo(f"  {answer['content']}")
    print_private(answer)
    if answer["revision"] > 1:
        tell("  earlier texts: {}", command_line("history", key, persona=answer["persona"], url=url))


def forget(
    keys: Annotated[list[str], typer.Argument(help="The keys of the memories.", metavar="KEYS…")],
    reason: Reason = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be forgotten.")] = False,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Move memories to the trash. Exit status 1: one was not found."""
    answer = connection(url, persona).delete_json("/api/memories", keys=keys, reason=reason, dry_run=dry_run)
    if as_json:
        print_json(answer)
    else:
        for outcome in answer["outcomes"]:
            tell("{}: {}", outcome["key"], sentence(outcome["outcome"].replace("_", " ")))
            if outcome["outcome"] in ("forgotten", "already_forgotten"):
                tell("  bring it back: {}", command_line("revise", outcome["key"], "--restore", persona=answer["persona"], url=url))
    if any(outcome["outcome"] == "not_found" for outcome in answer["outcomes"]):
        raise typer.Exit(1)


def history(
    key: Annotated[str, typer.Argument(help="The key of the memory.", metavar="KEY")],
    restore: Annotated[int | None, typer.Option("--restore", help="Restore the content of this revision first.", metavar="N")] = None,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show the versions of a memory and the operations on it."""
    server = connection(url, persona)
    if restore is not None:
        server.post_json("/api/restore", {"key": key, "revision": restore})
    answer = server.get_json("/api/history", key=key)
    end_with_json(answer, as_json)
    memory = answer["memory"]
    current = {"revision": memory.get("revision", 1), "since": memory.get("updated_at", memory["created_at"]), **memory}
    for version in (current, *answer["versions"]):
        reason = worded(" (changed: {})", version["changed_because"]) if version.get("changed_because") else ""
        typer.echo(f"{version['revision']}. {version['since']}{reason}\n   {version['content']}")
    for event in answer["events"]:
        reason = event.get("reason") or event.get("rule")
        typer.secho(f"{event['at']} {named('event', event['what'])}{f': {reason}' if reason else ''}", dim=True)
