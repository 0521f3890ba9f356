"""What a feature brings to `memory-mcp`; `memory_mcp/feature.py` says where features are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import typer

Command = Callable[..., None] | typer.Typer


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """`everyday`: what the first page of help shows; `data` and `admin`: the members of these groups."""

    everyday: Sequence[Command] = ()
    data: Sequence[Command] = ()
    admin: Sequence[Command] = ()
