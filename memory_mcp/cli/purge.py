"""`memory-mcp purge`: erases memories for good."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import AsJson, PersonaName, PoolName, Url, answer_of, connection, print_json
from memory_mcp.errors import InvalidInput

Yes = Annotated[bool, typer.Option("--yes", help="Don't ask for confirmation.")]


def purge(
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="Keys of memories in the trash. Default: all that are due by `retention` in config.json.", metavar="[KEYS]…"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be erased.")] = False,
    remove_kept: Annotated[bool, typer.Option("--remove-kept", help="Also erase it from the files that older servers left.")] = False,
    yes: Yes = False,
    persona: PersonaName = None,
    pool: PoolName = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Erase memories for good, after listing them and asking for confirmation. Exit status 1: one that was named can't be erased."""
    server = connection(url, persona, pool=pool)
    listed = server.post_json("/api/purge", {"keys": keys or []})
    if not as_json or dry_run:
        print_json(listed) if as_json else _show_plan(listed, is_trial=dry_run)
    left = [outcome for outcome in listed.get("outcomes", []) if outcome["outcome"] != "would_erase"]
    if dry_run or not listed.get("confirm"):
        raise typer.Exit(bool(left))
    if not yes and not answer_of(lambda: typer.confirm(worded("Erase this for good? This can't be undone")), "Answer y, or use --yes"):
        raise InvalidInput("nothing is erased", "it was not confirmed", "Answer y, or use --yes")
    request = {"keys": keys or [], "confirm": listed["confirm"], "remove_kept": remove_kept or None}
    done = server.post_json("/api/purge", request)
    if as_json:
        print_json(done)
        raise typer.Exit(bool(left))
    erased = done.get("erased", sum(outcome["outcome"] == "erased" for outcome in done.get("outcomes", [])))
    if done.get("trashed"):
        tell("{}: {} erased, {} moved to the trash", done["persona"], erased, done["trashed"])
    else:
        tell("{}: {} erased", done["persona"], erased)
    if not done["swept"]:
        tell("Traces remain in files that are being read; they are removed as soon as the readers finish.")
    _show_remains(done)
    raise typer.Exit(bool(left))


def _show_plan(listed: Mapping[str, Any], *, is_trial: bool) -> None:
    for outcome in listed.get("outcomes", []):
        what = outcome["outcome"] if is_trial else outcome["outcome"].removeprefix("would_")
        why = worded(outcome["reason"]) if outcome.get("reason") else outcome.get("content", "")
        typer.echo(f"{outcome['key']}: {worded(what)} {why}".rstrip())
    for what, verb in (("trash", "move to the trash"), ("erase", "erase")):
        for due in listed.get(what, []):
            since = worded("since {}", due["since"])
            typer.echo(f"{due['key']}: {worded(verb)} ({due['rule']}, {since}) {due.get('content', '')}".rstrip())
    if "to_trash" in listed:
        tell("{}: {} to move to the trash, {} to erase", listed["persona"], listed["to_trash"], listed["to_erase"])
    if listed.get("confirm"):
        _show_remains(listed)


def _show_remains(answer: Mapping[str, Any]) -> None:
    """Lists where the erased text still occurs."""
    for name, words in (
        ("also_in", "the same text is in"),
        ("stated", "stated outside of memories; kept unless it is removed with unrelate first:"),
        ("kept_in", "a file of an older server contains it:"),
        ("removed", "removed:"),
        ("unsearched", "a table of an older server could not be searched:"),
    ):
        for entry in answer.get(name, []):
            typer.echo(f"{worded(words)} {entry}")
    if answer.get("turns"):
        tell("turns of conversations that go with it: {}", answer["turns"])
    if answer.get("in_context"):
        tell("{} contains it, or can't be read: check it, and change it with update_context or by hand", answer["in_context"])
    for place in answer.get("remains", []):
        tell(place, err=True, dim=True)
