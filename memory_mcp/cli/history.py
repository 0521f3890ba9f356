"""`memory-mcp history` and `memory-mcp purge`: what a memory said before, and erasing for good."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli.options import AsJson, PersonaName, Url, connection

Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(history)
    app.command()(purge)


def history(
    key: Annotated[str, typer.Argument(help="Which memory.", metavar="KEY")],
    restore: Annotated[int | None, typer.Option("--restore", help="Let it say again what it said in this revision.", metavar="N")] = None,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show what a memory said before, and what was done to it."""
    there = connection(url, persona)
    if restore is not None:
        there.post_json("/api/restore", {"key": key, "revision": restore})
    answer = there.get_json("/api/history", key=key)
    if as_json:
        _print_json(answer)
        return
    memory = answer["memory"]
    for told in (
        {"revision": memory.get("revision", 1), "since": memory.get("updated_at", memory["created_at"]), **memory},
        *answer["versions"],
    ):
        why = f" (changed: {told['changed_because']})" if told.get("changed_because") else ""
        typer.echo(f"{told['revision']}. {told['since']}{why}\n   {told['content']}")
    for event in answer["events"]:
        because = event.get("reason") or event.get("rule")
        typer.secho(f"{event['at']} {event['what']}{f': {because}' if because else ''}", dim=True)


def purge(
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="Memories in the trash; none: what `retention` in config.json has come to.", metavar="[KEYS]…"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    remove_kept: Annotated[bool, typer.Option("--remove-kept", help="Also the files of older servers that still hold it.")] = False,
    yes: Yes = False,
    persona: PersonaName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Erase for good. Lists first what would go, and asks."""
    there = connection(url, persona)
    listed = there.post_json("/api/purge", {"keys": keys or []})
    if not as_json or dry_run:
        _print_json(listed) if as_json else _show_plan(listed)
    if dry_run or not listed.get("confirm"):
        return
    if not yes:
        typer.confirm("Erase this for good? There is no way back", abort=True)
    asked = {"keys": keys or [], "confirm": listed["confirm"], "remove_kept": remove_kept or None}
    done = there.post_json("/api/purge", asked)
    if as_json:
        _print_json(done)
        return
    erased = done.get("erased", sum(outcome["outcome"] == "erased" for outcome in done.get("outcomes", [])))
    typer.echo(f"{done['persona']}: {erased} erased" + (f", {done['trashed']} put in the trash" if done.get("trashed") else ""))
    if not done["swept"]:
        typer.echo("Traces are still in its files, which somebody reads: they go as soon as that is over.")
    _show_rest(done)


def _show_plan(listed: Mapping[str, Any]) -> None:
    for outcome in listed.get("outcomes", []):
        typer.echo(f"{outcome['key']}: {outcome['outcome']} {outcome.get('reason') or outcome.get('content', '')}".rstrip())
    for what, verb in (("trash", "into the trash"), ("erase", "for good")):
        for due in listed.get(what, []):
            typer.echo(f"{due['key']}: {verb} ({due['rule']}, since {due['since']}) {due.get('content', '')}".rstrip())
    if "to_trash" in listed:
        typer.echo(f"{listed['persona']}: {listed['to_trash']} due for the trash, {listed['to_erase']} to be erased")
    _show_rest(listed)


def _show_rest(told: Mapping[str, Any]) -> None:
    """Where the same text is still to be found."""
    for name, words in (
        ("also_in", "the same text is in"),
        ("stated", "this was stated outside of any memory, and stays unless unrelate takes it back first:"),
        ("kept_in", "a file of an older server holds it:"),
        ("removed", "removed:"),
        ("unsearched", "a table of an older server could not be searched:"),
    ):
        for found in told.get(name, []):
            typer.echo(f"{words} {found}")
    if told.get("in_context"):
        typer.echo(f"{told['in_context']} quotes it, or can't be read and may: change it with update_context, or by hand")
    for sentence in told.get("remains", []):
        typer.secho(sentence, err=True, dim=True)


def _print_json(answer: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
