"""The thread of a background worker: it does one small step after another."""

import logging
import threading
from collections.abc import Callable

# How often to look for work without a wake-up.
POLL_SECONDS = 1.0

logger = logging.getLogger(__name__)


class StepThread:
    """Calls `step` repeatedly; `step` returns how many seconds to wait before the next call, which `wake` cuts short."""

    def __init__(self, name: str, step: Callable[[], float]) -> None:
        self._name, self._step = name, step
        self._woken = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Makes the next step start now."""
        self._woken.set()

    def stop(self) -> None:
        """Waits for the current step and ends the thread. Can be called twice, and without `start`."""
        self._stopping = True
        self._woken.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            try:
                wait = self._step()
            except BaseException:  # the top of the thread: after any error, also a panic of a Rust library, the next step must run
                logger.exception("a step of the %s failed; the next one follows", self._name)
                wait = POLL_SECONDS
            if wait:
                self._woken.wait(wait)
                self._woken.clear()
