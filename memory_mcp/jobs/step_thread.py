"""A thread that does one small step after another: what the workers here have in common."""

import logging
import threading
from collections.abc import Callable

# How often to look whether there is something to do that nobody woke us for.
POLL_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Stepping:
    """Calls `step` again and again; it says how many seconds to wait before the next time, unless somebody wakes us."""

    def __init__(self, name: str, step: Callable[[], float]) -> None:
        self._name, self._step = name, step
        self._something = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There may be something to do now."""
        self._something.set()

    def stop(self) -> None:
        """Ends after the step that is under way, and waits for that. May be called twice, and without a start."""
        self._stopping = True
        self._something.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            try:
                wait = self._step()
            except (
                BaseException
            ):  # the top of the thread: whatever it was, also a panic of a library in Rust, the next step must still come
                logger.exception("the %s stumbled and goes on", self._name)
                wait = POLL_SECONDS
            if wait:
                self._something.wait(wait)
                self._something.clear()
