"""`memory-mcp token`: makes, lists and revokes tokens in the data directory. A running server sees it at its next call."""

import json
import re
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_mcp.cli.options import AsJson, DataDirectory
from memory_mcp.config.reading import default_data_directory
from memory_mcp.domain import TOKEN_SCOPES, TokenScope
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.names import canonical_name

if TYPE_CHECKING:
    from memory_mcp.store.files.access_tokens import Token

_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}

token = typer.Typer(help="Tokens, which say who may call as which personas, and for what.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds the group of commands."""
    token.command()(create)
    token.command("list")(list_tokens)
    token.command()(revoke)
    app.add_typer(token, name="token")


def create(
    persona: Annotated[list[str] | None, typer.Option("--persona", "-p", help="Whose memory; may be repeated.", metavar="NAME")] = None,
    all_personas: Annotated[bool, typer.Option("--all-personas", help="Every persona, also those to come.")] = False,
    scopes: Annotated[str, typer.Option(help=f"Of {', '.join(TOKEN_SCOPES)}.", metavar="LIST")] = "read,write",
    name: Annotated[str, typer.Option(help="What it is for, as `token list` shows it.", metavar="TEXT")] = "",
    expires: Annotated[str | None, typer.Option(help="12h, 90d, 8w, or a day such as 2026-12-31. Default: never.", metavar="WHEN")] = None,
    data: DataDirectory = None,
) -> None:
    """Make a token. Its secret is printed once, alone on stdout, and kept nowhere."""
    # The library of locks, which the other commands do without.
    from memory_mcp.store.files.access_tokens import create_token, read_tokens  # noqa: PLC0415

    if bool(persona) == all_personas:
        raise InvalidInput("a token is for some personas or for all", "", "Say --persona NAME, once for each, or --all-personas")
    now = datetime.now(UTC)
    directory = data or default_data_directory()
    who = None if all_personas else [canonical_name(one) for one in persona or []]
    what, until = _scopes(scopes), _moment(expires, now) if expires else None
    is_there, is_first = directory.exists(), read_tokens(directory) is None
    made, secret = create_token(directory, name=name, personas=who, scopes=what, now=now, expires_at=until)
    typer.echo(secret)
    typer.echo(f"Token {made.id}: {_reach(made)}. It is not shown again; clients send it as `Authorization: Bearer …`.", err=True)
    if not is_there:
        typer.echo(f"The data directory {directory.resolve()} did not exist: it was created.", err=True)
    if is_first:
        typer.echo("It is the first one: from now on the server refuses every call without a token.", err=True)


def list_tokens(data: DataDirectory = None, as_json: AsJson = False) -> None:
    """List the tokens. The secrets can't be had back."""
    from memory_mcp.store.files.access_tokens import read_tokens  # noqa: PLC0415  as above

    found = read_tokens(data or default_data_directory())
    now = datetime.now(UTC)
    if as_json:
        typer.echo(json.dumps({"tokens": [_as_json(one, now) for one in (found or {}).values()]}, ensure_ascii=False, indent=2))
        return
    if not found:
        typer.echo("There are no tokens." + ("" if found is None else " Nobody can call."))
        return
    for one in found.values():
        until = f", until {one.expires_at:%Y-%m-%d %H:%M} UTC" if one.expires_at else ""
        called = f" ({one.name})" if one.name else ""
        typer.echo(f"{one.id}  {one.state(now):8}  made {one.created_at:%Y-%m-%d}{until}  {_reach(one)}{called}")


def revoke(
    identity: Annotated[str, typer.Argument(help="The id that `token list` shows.", metavar="ID")], data: DataDirectory = None
) -> None:
    """Make a token good for nothing, at once."""
    from memory_mcp.store.files.access_tokens import id_of, revoke_token  # noqa: PLC0415  as above

    revoked = revoke_token(data or default_data_directory(), id_of(identity) or identity, datetime.now(UTC))
    typer.echo(f"Token {revoked.id} is revoked.")


def _scopes(text: str) -> list[TokenScope]:
    named = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in named if word not in TOKEN_SCOPES]
    if unknown or not named:
        raise InvalidInput(
            f"--scopes {text!r} is no list of scopes",
            f"{unknown[0]!r} is none" if unknown else "it is empty",
            f"Use {', '.join(TOKEN_SCOPES)}",
        )
    return [scope for scope in TOKEN_SCOPES if scope in named]


def _moment(text: str, now: datetime) -> datetime:
    span = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if span:
        return now + int(span[1]) * _SPANS[span[2]]
    try:
        # The end of that day, here: whoever writes a day means that it still counts.
        return datetime.combine(datetime.fromisoformat(text.strip()).date(), time.max).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"--expires {text!r} is no time", "", "Write 12h, 90d, 8w, or a day such as 2026-12-31") from None


def _reach(one: "Token") -> str:
    return f"{'all personas' if one.personas is None else ', '.join(one.personas)}: {', '.join(one.scopes)}"


def _as_json(one: "Token", now: datetime) -> dict[str, Any]:
    moments = {"created_at": one.created_at, "expires_at": one.expires_at, "revoked_at": one.revoked_at}
    return {
        "id": one.id,
        "name": one.name,
        "personas": "all" if one.personas is None else list(one.personas),
        "scopes": list(one.scopes),
        "state": one.state(now),
        **{name: moment and moment.isoformat(timespec="seconds") for name, moment in moments.items()},
    }
