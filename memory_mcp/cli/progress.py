"""A bar on stderr for what takes a while, where somebody is looking at it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def progress(what: str, total: int | None, quiet: bool = False) -> Iterator[Advance]:
    """Yields what is called with how much more of `total` is done; None where nobody knows how much there is."""
    # Only commands that show one need it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
