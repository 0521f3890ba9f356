"""What a feature brings to the server. Each field is empty unless it says otherwise; `memory_mcp/feature.py` says where features are."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from memory_mcp.config.settings import Settings
from memory_mcp.errors import MemoryMCPError
from memory_mcp.feature import modules
from memory_mcp.graph.update.cooccurrence import Names
from memory_mcp.jobs.chore_worker import Chore
from memory_mcp.jobs.chores import ChoreParts
from memory_mcp.server.conversing import Conversing
from memory_mcp.server.operation import Operation

# A call whose body or answer may have any size, or that lasts as long as a model talks: it waits for no turn of its persona as others do.
Stream = Literal["import", "file", "export", "conversation"]
# Whether a persona, or the token with this id, may write to a pool; None where it may not even read it.
MayWrite = Callable[[str, str | None], bool | None]


@dataclass(frozen=True, slots=True)
class App:
    """A page that hosts with MCP Apps show with the answer of a tool: what it shows, and its HTML."""

    description: str
    page: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """`operations`: those with a route are served, and are in the OpenAPI document; `Visit.perform` and tools call them, too.
    `toolsets`: operations with a tool, by the toolset that offers them; one of several features is offered by each.
    `routes`: pages and whatever else is served beside the operations; `work`: under which paths calls wait for their turn;
    `streams`: paths with a body or an answer of any size; `body_limits`: how many bytes a body may have, where that is no import.
    `refusal_page`: what a browser gets that is not let in. `wires`: under which paths another API than ours is spoken, and how a refusal is
    written in it; whatever else is answered there passes as it is. `lifespan`: runs from before the first call until after the last. `apps`: pages by the name that `Tool.app` says.
    `chores`: what is done for each persona in the background, made once from the parts that chores may need.
    `pools`: the stores that personas share, by name, each with who may; without this no request reaches one.
    `names`: what finds names in texts beside the rules, if the settings want it.
    `conversing`: what runs conversations, if all that it needs is installed. It asks for the settings anew for each turn."""

    operations: Sequence[Operation] = ()
    toolsets: Mapping[str, Sequence[Operation]] = field(default_factory=dict)
    routes: Sequence[BaseRoute] = ()
    work: Sequence[str] = ()
    streams: Mapping[str, Stream] = field(default_factory=dict)
    body_limits: Mapping[str, int] = field(default_factory=dict)
    refusal_page: Callable[[Scope, MemoryMCPError], Response] | None = None
    wires: Mapping[str, Callable[[MemoryMCPError], Response]] = field(default_factory=dict)
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None
    apps: Mapping[str, App] = field(default_factory=dict)
    chores: Callable[[ChoreParts], Sequence[Chore]] = lambda _: ()
    pools: Callable[[Settings], Mapping[str, MayWrite]] | None = None
    names: Callable[[Settings], Names | None] = lambda _: None
    conversing: Callable[[Callable[[], Settings]], Conversing | None] = lambda _: None


@cache
def operations() -> Mapping[str, Operation]:
    """The operations of all features, by the names of their functions: a feature knows another's by no more."""
    return {operation.function.__name__: operation for feature in features() for operation in feature.operations}


@cache
def features() -> tuple[Feature, ...]:
    """What all features bring."""
    return tuple(module.FEATURE for module in modules("feature"))


@cache
def _pools() -> Callable[[Settings], Mapping[str, MayWrite]] | None:
    return next((feature.pools for feature in features() if feature.pools), None)


def can_share() -> bool:
    """Whether there can be pools."""
    return _pools() is not None


def pools(settings: Settings) -> Mapping[str, MayWrite]:
    """The pools of this server, by name."""
    of = _pools()
    return of(settings) if of else {}


def names(settings: Settings) -> Names | None:
    """What finds names in texts beside the rules."""
    return next((found for feature in features() if (found := feature.names(settings))), None)
