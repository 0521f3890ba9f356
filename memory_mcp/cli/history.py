"""`memory-mcp history`: shows the versions and operations of a memory, and restores a version."""

from typing import Annotated

import typer

from memory_mcp.cli.options import AsJson, PersonaName, Url, connection, print_json


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
    if as_json:
        print_json(answer)
        return
    memory = answer["memory"]
    current = {"revision": memory.get("revision", 1), "since": memory.get("updated_at", memory["created_at"]), **memory}
    for version in (current, *answer["versions"]):
        reason = f" (changed: {version['changed_because']})" if version.get("changed_because") else ""
        typer.echo(f"{version['revision']}. {version['since']}{reason}\n   {version['content']}")
    for event in answer["events"]:
        reason = event.get("reason") or event.get("rule")
        typer.secho(f"{event['at']} {event['what']}{f': {reason}' if reason else ''}", dim=True)
