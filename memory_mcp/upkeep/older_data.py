"""What a feature does about the files of older servers in a data directory; without one, they stay as they are."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from memory_mcp.feature import modules
from memory_mcp.personas.registry import Personas


class OlderItem(Protocol):
    """A file or directory of an older server."""

    @property
    def source(self) -> str:
        """Where it is in the data directory."""

    @property
    def refused(self) -> str:
        """Why it isn't moved until the user decides; empty if it is."""

    def sentence(self, *, done: bool) -> str:
        """What was done with it, or will be."""


@dataclass(frozen=True, slots=True)
class OlderData:
    """`items` lists the files, `move` brings them to their places before the server answers, which takes milliseconds, and `take_over`
    converts their tables while it does, until it is told to stop."""

    items: Callable[[Path], Sequence[OlderItem]]
    move: Callable[[Personas, datetime], object]
    take_over: Callable[[Personas, threading.Event], object]


def adopters() -> Iterable[OlderData]:
    """What features do about them."""
    return (module.OLDER_DATA for module in modules("older_data"))


def older_items(directory: Path) -> list[OlderItem]:
    """The files and directories of older servers in a data directory, as far as a feature knows them."""
    return [item for adopter in adopters() for item in adopter.items(directory)]
