"""The key `pools` of config.json: who reads and who writes to each pool."""

import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from memory_mcp.config.group import Keys

if TYPE_CHECKING:
    from memory_mcp.config.settings import Settings

Role = Literal["readers", "writers", "reader_tokens", "writer_tokens"]
Roles = Mapping[Role, list[str] | Literal["all"]]


def roles_of(settings: "Settings") -> Mapping[str, Roles]:
    """The roles of each pool, by its name."""
    roles: Mapping[str, Roles] = vars(settings)["pools"]
    return roles


def _name(name: str) -> str:
    name = unicodedata.normalize("NFC", name)
    if not name or name != name.strip() or "@" in name or not name.isprintable() or len(name) > 100:
        raise ValueError("the name of a pool, of at most 100 visible characters without @")
    return name


def _check(settings: "Settings") -> None:
    if settings.cell.of > 1 and roles_of(settings):
        raise ValueError("a pool is on one server, and the personas of a cell could not read it: pools must be empty")


SETTINGS = Keys(
    keys={
        "pools": (
            dict[Annotated[str, AfterValidator(_name)], dict[Role, list[str] | Literal["all"]]],
            Field(
                {},
                description="Pools that personas share, by name: who reads each (`readers`), and who also writes to it (`writers`): personas, "
                "or `all`; `reader_tokens`, `writer_tokens`: ids of tokens.",
            ),
        )
    },
    check=_check,
)
