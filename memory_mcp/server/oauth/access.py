"""From the token of an OAuth client to what it allows, under the settings of the moment."""

from collections.abc import Collection
from datetime import datetime

from memory_mcp.config.settings import OAuth
from memory_mcp.domain import TokenScope
from memory_mcp.server.oauth.external import ExternalServer
from memory_mcp.server.oauth.resource import OAUTH_SCOPES, Rights, challenge, personas_of_audience, shared
from memory_mcp.server.runtime import Runtime
from memory_mcp.store.files.access_tokens import Tokens
from memory_mcp.store.files.oauth_grants import ACCESS, LiveRegistry, grant_of


class OAuthAccess:
    """Used by the event loop alone."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.registry = LiveRegistry(runtime.personas.directory)
        self._external: tuple[OAuth, ExternalServer] | None = None

    @property
    def settings(self) -> OAuth:
        """The settings of a call that begins now."""
        return self._runtime.config.current().oauth

    def challenge(self, persona: str | None, *, has_token: bool) -> str:
        """Where a client that was not let in learns how to get a token."""
        return challenge(self.settings, persona, error="invalid_token" if has_token else "")

    def step_up(self, persona: str | None, scopes: Collection[TokenScope], lacking: Collection[TokenScope]) -> str | None:
        """Where a client gets a token with the scopes that it lacks; None if it lacks none, or one that no client can have."""
        if not lacking or not set(lacking) <= set(OAUTH_SCOPES):
            return None
        wanted = [scope for scope in OAUTH_SCOPES if scope in scopes or scope in lacking]
        return challenge(self.settings, persona, error="insufficient_scope", scopes=wanted)

    async def rights(self, secret: str, tokens: Tokens) -> Rights | None:
        """What a client's token allows, None if it is not good.

        Raises:
            StoreError: the grants, or the secret for introspection, can't be read.
            IssuerUnreachable: whether it is good can't be known now.
        """
        oauth = self.settings
        if oauth.authorization_server == "built_in":
            return self._granted(oauth, secret, tokens, self._runtime.clock())
        if oauth.authorization_server == "external":
            if self._external is None or self._external[0] != oauth:
                self._external = (oauth, ExternalServer(oauth))
            return await self._external[1].rights(secret)
        return None

    def _granted(self, oauth: OAuth, secret: str, tokens: Tokens, now: datetime) -> Rights | None:
        """A grant is never more than its owner's token, and good only at the resource that it was granted for."""
        grant = self.registry.current().grants.get(grant_of(secret, ACCESS) or "")
        if grant is None or grant.state(now) != "in force":
            return None
        if not any(stored.is_of(secret) and stored.expires_at > now for stored in grant.access):
            return None
        owner, good_for = tokens.get(grant.asked.owner), personas_of_audience(oauth, [grant.asked.resource])
        if owner is None or owner.state(now) != "in force" or good_for == frozenset():
            return None
        own = None if owner.personas is None else frozenset(owner.personas)
        personas = shared(shared(frozenset(grant.asked.personas), own), good_for)
        return Rights(f"oauth:{grant.id}", personas, frozenset(grant.asked.scopes).intersection(owner.scopes, OAUTH_SCOPES))
