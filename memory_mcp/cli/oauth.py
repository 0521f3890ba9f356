"""`memory-mcp oauth`: lists and revokes what was granted to OAuth clients. A running server applies changes at its next call."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import AsJson, DataDirectory, end_with_json
from memory_mcp.config.reading import default_data_directory
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from memory_mcp.store.files.oauth_grants import Grant

oauth = typer.Typer(name="oauth", help="List and revoke what was granted to OAuth clients.", no_args_is_help=True)


@oauth.command("list")
def list_grants(data: DataDirectory = None, as_json: AsJson = False) -> None:
    """List the grants: which client may use which personas, and for whom."""
    # Imported here: the other commands don't need the library for locks.
    from memory_mcp.store.files.oauth_grants import read_registry  # noqa: PLC0415

    grants, now = read_registry(data or default_data_directory()).grants.values(), datetime.now(UTC)
    exchanged = [grant for grant in grants if grant.refresh or grant.revoked_at]
    end_with_json({"grants": [_as_json(grant, now) for grant in exchanged]}, as_json)
    if not exchanged:
        tell("Nothing is granted.")
    for grant in exchanged:
        asked = grant.asked
        what = f"{', '.join(asked.personas)}: {', '.join(asked.scopes)}"
        made = sentence("made {} with token {}", f"{grant.created_at:%Y-%m-%d}", asked.owner)
        typer.echo(f"{grant.id}  {worded(grant.state(now)):8}  {worded(made)}  {what}  {asked.client_name or '–'} ({asked.client_id})")


@oauth.command()
def revoke(identity: Annotated[str, typer.Argument(help="The id in `oauth list`.", metavar="ID")], data: DataDirectory = None) -> None:
    """Revoke a grant, with immediate effect."""
    from memory_mcp.store.files.oauth_grants import revoke_grant  # noqa: PLC0415  as above

    revoked = revoke_grant(data or default_data_directory(), identity, datetime.now(UTC))
    tell("The grant {} of {} is revoked.", revoked.id, revoked.asked.client_name or revoked.asked.client_id)


def _as_json(grant: "Grant", now: datetime) -> dict[str, Any]:
    asked = grant.asked
    moments = {"created_at": grant.created_at, "ends_at": grant.ends_at, "revoked_at": grant.revoked_at}
    return {
        "id": grant.id,
        "client_id": asked.client_id,
        "client_name": asked.client_name,
        "token": asked.owner,
        "personas": list(asked.personas),
        "scopes": list(asked.scopes),
        "resource": asked.resource,
        "state": grant.state(now),
        **{name: moment and moment.isoformat(timespec="seconds") for name, moment in moments.items()},
    }
