"""A progress bar on stderr for long operations, shown only in a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memory_mcp.cli.japanese import worded

if TYPE_CHECKING:
    from rich.progress import Progress

Advance = Callable[[int], None]


@contextmanager
def steps(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for repeated phases; yields a function to call with the completed and the total amount."""
    with _bar(quiet=False) as bar:
        task = bar.add_task(worded(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def progress(what: str, total: int | None, quiet: bool = False) -> Iterator[Advance]:
    """A progress bar; yields a function to call with each further amount. `total` is None if it is unknown."""
    with _bar(quiet=quiet) as bar:
        task = bar.add_task(worded(what), total=total)
        yield lambda count: bar.advance(task, count)


def _bar(*, quiet: bool) -> "Progress":
    # Imported here: only commands with a progress bar need rich.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)
