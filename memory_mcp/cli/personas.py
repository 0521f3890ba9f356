"""`memory-mcp persona`: lists, measures, renames, copies, merges and erases personas on the running server."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli import memories
from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import AsJson, PersonaName, Url, answer_of, connection, end_with_json
from memory_mcp.wording import sentence

group = typer.Typer(name="persona", help="Manage personas: list, stats, rename, copy, merge, erase.", no_args_is_help=True)
group.command("list")(memories.personas)

Name = Annotated[str, typer.Argument(help="The name of the persona.", metavar="NAME")]


@group.command()
def stats(
    name: Annotated[str | None, typer.Argument(help="The name of the persona.", metavar="NAME")] = None,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show the contents and the size of a persona."""
    answer = connection(url, name or persona, as_stored=True).get_json("/api/persona")
    end_with_json(answer, as_json)
    for field, value in answer.items():
        typer.echo(f"{worded(field)}: {_format_value(value)}")


@group.command()
def rename(
    name: Name, to: Annotated[str, typer.Argument(help="The new name.", metavar="NEW")], url: Url = None, as_json: AsJson = False
) -> None:
    """Rename a persona. Clients must send the new name afterwards."""
    answer = connection(url, name, as_stored=True).post_json("/api/persona/rename", {"to": to})
    _report(answer, as_json, sentence("{} is renamed to {}", name, answer["persona"]))


@group.command()
def copy(
    name: Name, to: Annotated[str, typer.Argument(help="The name of the copy.", metavar="NEW")], url: Url = None, as_json: AsJson = False
) -> None:
    """Copy a persona with all its data."""
    answer = connection(url, name, as_stored=True).post_json("/api/persona/copy", {"to": to})
    _report(answer, as_json, sentence("{} is a copy of {}", answer["persona"], name))


@group.command()
def merge(
    name: Name,
    into: Annotated[str, typer.Argument(help="The persona to merge into.", metavar="INTO")],
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Copy a persona's memories into another persona. The first is kept until you erase it."""
    answer = connection(url, name, as_stored=True).post_json("/api/persona/merge", {"into": into})
    counts = (answer["taken"], answer["known"], answer["erased_before"])
    done = sentence("{}: {} copied, {} known already, {} left out because they were erased there", answer["persona"], *counts)
    _report(answer, as_json, done)


@group.command()
def erase(
    name: Name,
    remove_kept: Annotated[bool, typer.Option("--remove-kept", help="Also erase its data in files that older servers left.")] = False,
    remove_backups: Annotated[bool, typer.Option("--remove-backups", help="Also erase its backups on the server's disk.")] = False,
    confirm: Annotated[str | None, typer.Option("--confirm", help="The name again, instead of the prompt.", metavar="NAME")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Erase a persona with all its data for good."""
    server = connection(url, name, as_stored=True)
    listed = server.post_json("/api/persona/erase", {})
    if confirm is None:
        for field in ("memories", "superseded", "in_trash", "versions", "database_bytes", "kept_copies", "backups", "tokens"):
            typer.echo(f"{worded(field)}: {_format_value(listed[field])}")
        question = worded("Type {} to erase it for good", listed["persona"])
        confirm = answer_of(lambda: str(typer.prompt(question)), "Type the name, or use --confirm")
    answer = server.post_json(
        "/api/persona/erase", {"confirm": confirm, "remove_kept": remove_kept or None, "remove_backups": remove_backups or None}
    )
    backups = answer.get("removed_backups")
    erased = sentence("{} is erased, and {} backup(s) of it", name, backups) if backups else sentence("{} is erased", name)
    _report(answer, as_json, erased)
    for place in answer["remains"]:
        tell(place, err=True, dim=True)


def _report(answer: Mapping[str, Any], as_json: bool, done: str) -> None:
    end_with_json(answer, as_json)
    tell(done)
    for path in answer.get("kept_in", []):
        tell("a file of an older server contains some of it: {}", path)
    if answer.get("tokens"):
        tell("tokens that name {}: {}", answer.get("renamed_from", answer["persona"]), ", ".join(answer["tokens"]))


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return worded("yes" if value else "no")
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
