"""`memory-mcp persona`: a persona as a whole, on the running server: listed, in figures, renamed, copied, merged, erased."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli import memories
from memory_mcp.cli.options import AsJson, Url, connection

Name = Annotated[str, typer.Argument(help="Which persona.", metavar="NAME")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(help="A persona as a whole: list, stats, rename, copy, merge, erase.", no_args_is_help=True)
    group.command("list")(memories.personas)
    for command in (stats, rename, copy, merge, erase):
        group.command()(command)
    app.add_typer(group, name="persona")


def stats(name: Name, url: Url = None, as_json: AsJson = False) -> None:
    """Show what a persona holds and takes."""
    answer = connection(url, name).get_json("/api/persona")
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    for field, value in answer.items():
        typer.echo(f"{field}: {_shown(value)}")


def rename(
    name: Name, to: Annotated[str, typer.Argument(help="The new name.", metavar="NEW")], url: Url = None, as_json: AsJson = False
) -> None:
    """Give a persona another name. Clients have to send the new one from then on."""
    answer = connection(url, name).post_json("/api/persona/rename", {"to": to})
    _report(answer, as_json, f"{name} is {answer['persona']} now")


def copy(
    name: Name, to: Annotated[str, typer.Argument(help="The name of the copy.", metavar="NEW")], url: Url = None, as_json: AsJson = False
) -> None:
    """Make a second persona with everything that one has."""
    answer = connection(url, name).post_json("/api/persona/copy", {"to": to})
    _report(answer, as_json, f"{answer['persona']} is a copy of {name}")


def merge(
    name: Name, into: Annotated[str, typer.Argument(help="Whose memory grows.", metavar="INTO")], url: Url = None, as_json: AsJson = False
) -> None:
    """Take a persona's memories into another's. The first stays as it is until it is erased."""
    answer = connection(url, name).post_json("/api/persona/merge", {"into": into})
    counts = f"{answer['taken']} taken, {answer['known']} known already, {answer['erased_before']} erased there before"
    _report(answer, as_json, f"{answer['persona']}: {counts}")


def erase(
    name: Name,
    remove_kept: Annotated[bool, typer.Option("--remove-kept", help="Also what older servers left of it.")] = False,
    remove_backups: Annotated[bool, typer.Option("--remove-backups", help="Also every backup of it on the server's disk.")] = False,
    confirm: Annotated[str | None, typer.Option("--confirm", help="The name once more, instead of being asked.", metavar="NAME")] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Remove a persona with everything that it has. There is no way back."""
    there = connection(url, name)
    listed = there.post_json("/api/persona/erase", {})
    if confirm is None:
        for field in ("memories", "superseded", "in_trash", "versions", "database_bytes", "kept_copies", "backups", "tokens"):
            typer.echo(f"{field}: {_shown(listed[field])}")
        confirm = typer.prompt(f"Type {listed['persona']} to erase it for good")
    answer = there.post_json(
        "/api/persona/erase", {"confirm": confirm, "remove_kept": remove_kept or None, "remove_backups": remove_backups or None}
    )
    gone = f", and {answer['removed_backups']} backup(s) of it" if answer.get("removed_backups") else ""
    _report(answer, as_json, f"{name} is erased{gone}")
    for sentence in answer["remains"] if not as_json else []:
        typer.secho(sentence, err=True, dim=True)


def _report(answer: Mapping[str, Any], as_json: bool, sentence: str) -> None:
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    typer.echo(sentence)
    for path in answer.get("kept_in", []):
        typer.echo(f"a file of an older server holds some of it: {path}")
    if answer.get("tokens"):
        typer.echo(f"tokens that name {answer.get('renamed_from', answer['persona'])}: {', '.join(answer['tokens'])}")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
