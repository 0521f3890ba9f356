"""`memory-mcp token`: creates, lists and revokes tokens in the data directory. A running server applies changes at its next call."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import AsJson, DataDirectory, end_with_json
from memory_mcp.config.reading import default_data_directory
from memory_mcp.domain import TOKEN_SCOPES, TokenScope
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.names import addressed_name
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from memory_mcp.store.files.access_tokens import Token

token = typer.Typer(name="token", help="Create, list and revoke tokens, which grant access to personas.", no_args_is_help=True)


@token.command()
def create(
    persona: Annotated[
        list[str] | None, typer.Option("--persona", "-p", help="A persona it gives access to; may be repeated.", metavar="NAME")
    ] = None,
    all_personas: Annotated[bool, typer.Option("--all-personas", help="Give access to all personas, including future ones.")] = False,
    scopes: Annotated[str, typer.Option(help=f"A list of {', '.join(TOKEN_SCOPES)}.", metavar="LIST")] = "read,write",
    name: Annotated[str, typer.Option(help="A description for `token list`.", metavar="TEXT")] = "",
    expires: Annotated[str | None, typer.Option(help="12h, 90d, 8w, or a day such as 2026-12-31. Default: never.", metavar="WHEN")] = None,
    data: DataDirectory = None,
) -> None:
    """Create a token. Its secret is printed once, alone on stdout, and stored nowhere."""
    # Imported here: the other commands don't need the library for locks.
    from memory_mcp.store.files.access_tokens import create_token, expiry_of, read_tokens  # noqa: PLC0415

    if bool(persona) == all_personas:
        raise InvalidInput("a token is for some personas or for all", "", "Use --persona NAME, once for each, or --all-personas")
    now = datetime.now(UTC)
    directory = data or default_data_directory()
    personas = None if all_personas else [addressed_name(persona_name) for persona_name in persona or []]
    granted, expires_at = _scopes(scopes), expiry_of(expires, now) if expires else None
    existed, is_first = directory.exists(), read_tokens(directory) is None
    made, secret = create_token(directory, name=name, personas=personas, scopes=granted, now=now, expires_at=expires_at)
    typer.echo(secret)
    tell("Token {}: {}. It is not shown again; clients send it as `Authorization: Bearer …`.", made.id, _grants(made), err=True)
    if not existed:
        tell("The data directory {} did not exist: it was created.", directory.resolve(), err=True)
    if is_first:
        tell("It is the first token: from now on the server refuses every call without a token.", err=True)


@token.command("list")
def list_tokens(data: DataDirectory = None, as_json: AsJson = False) -> None:
    """List the tokens, without their secrets."""
    from memory_mcp.store.files.access_tokens import read_tokens  # noqa: PLC0415  as above

    tokens = read_tokens(data or default_data_directory())
    now = datetime.now(UTC)
    end_with_json({"tokens": [_as_json(entry, now) for entry in (tokens or {}).values()]}, as_json)
    if not tokens:
        tell("There are no tokens." + ("" if tokens is None else " All calls are refused."))
        return
    for entry in tokens.values():
        until = entry.expires_at and f"{entry.expires_at:%Y-%m-%d %H:%M} UTC"
        day = f"{entry.created_at:%Y-%m-%d}"
        made = sentence("made {}, until {}", day, until) if until else sentence("made {}", day)
        description = f" ({entry.name})" if entry.name else ""
        typer.echo(f"{entry.id}  {worded(entry.state(now)):8}  {worded(made)}  {_grants(entry)}{description}")


@token.command()
def revoke(identity: Annotated[str, typer.Argument(help="The id in `token list`.", metavar="ID")], data: DataDirectory = None) -> None:
    """Revoke a token, with immediate effect."""
    from memory_mcp.store.files.access_tokens import id_of, revoke_token  # noqa: PLC0415  as above

    revoked = revoke_token(data or default_data_directory(), id_of(identity) or identity, datetime.now(UTC))
    tell("Token {} is revoked.", revoked.id)


def _scopes(text: str) -> list[TokenScope]:
    named = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in named if word not in TOKEN_SCOPES]
    if unknown or not named:
        raise InvalidInput(
            "--scopes {} is not a list of scopes",
            sentence("{} is not a scope", repr(unknown[0])) if unknown else "it is empty",
            "Use {}",
            repr(text),
            ", ".join(TOKEN_SCOPES),
        )
    return [scope for scope in TOKEN_SCOPES if scope in named]


def _grants(entry: "Token") -> str:
    return f"{'all personas' if entry.personas is None else ', '.join(entry.personas)}: {', '.join(entry.scopes)}"


def _as_json(entry: "Token", now: datetime) -> dict[str, Any]:
    moments = {"created_at": entry.created_at, "expires_at": entry.expires_at, "revoked_at": entry.revoked_at}
    return {
        "id": entry.id,
        "name": entry.name,
        "personas": "all" if entry.personas is None else list(entry.personas),
        "scopes": list(entry.scopes),
        "state": entry.state(now),
        **{name: moment and moment.isoformat(timespec="seconds") for name, moment in moments.items()},
    }
