"""A bar on stderr for what takes a while, where somebody is looking at it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

Advance = Callable[[int], None]


@contextmanager
def steps(what: str) -> Iterator[Callable[[int, int], None]]:
    """The same for what is done several times over: yields what is called with how much is done, and of how much."""
    with _bar(quiet=False) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def progress(what: str, total: int | None, quiet: bool = False) -> Iterator[Advance]:
    """Yields what is called with how much more of `total` is done; None where nobody knows how much there is."""
    with _bar(quiet=quiet) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


def _bar(*, quiet: bool) -> "Progress":
    # Only commands that show one need it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)
