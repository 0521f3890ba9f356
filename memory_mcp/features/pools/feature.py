"""What pools bring to the server: who may read and write to which."""

from collections.abc import Mapping
from functools import partial

from memory_mcp.config.settings import Settings
from memory_mcp.features.pools.settings import Role, Roles, roles_of
from memory_mcp.server.feature import Feature, MayWrite


def pools(settings: Settings) -> Mapping[str, MayWrite]:
    """All pools of config.json."""
    return {name: partial(may_write, roles) for name, roles in roles_of(settings).items()}


def may_write(roles: Roles, persona: str, token: str | None) -> bool | None:
    """Whether a persona, or a token of it, may write to the pool with these roles; None where it may not even read it."""

    def has_role(personas: Role, tokens: Role) -> bool:
        named, ids = roles.get(personas, []), roles.get(tokens, [])
        return named == "all" or persona in named or (token is not None and (ids == "all" or token in ids))

    return has_role("writers", "writer_tokens") or (False if has_role("readers", "reader_tokens") else None)


FEATURE = Feature(pools=pools)
