"""config.json while the server runs: the next call sees an edit, and a broken edit changes nothing.

Three ways lead to the same `refresh`, because each misses something: `current` looks at the file's stamp before every
call, watchdog hears of a change while nobody calls, and a poll reads the text where events don't arrive (bind mounts,
network drives) or the stamp stays the same.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from memory_mcp.config.reading import Loaded, load
from memory_mcp.config.settings import Settings, restart_needed
from memory_mcp.errors import ConfigError

POLL_SECONDS = 1.0
# Who saves a file in its place empties it before it is written: what is empty for less than this is not looked at yet.
SAVING_SECONDS = 0.5

logger = logging.getLogger(__name__)

Stamp = tuple[int, int, int]

_CHANGES = frozenset({"modified", "created", "moved", "deleted", "closed"})


class LiveConfig:
    """The settings in force. `error` says what is wrong with the file as it is now, `restart_pending` which changed keys wait."""

    def __init__(self, path: Path, on_change: Callable[[Settings], None] | None = None) -> None:
        """Reads the file once. A file that isn't there means defaults.

        Raises:
            ConfigError: the file is there and can't be used. Starting with other settings than asked for would be a lie.
        """
        self.path = path
        self.error: str | None = None
        self.restart_pending: list[str] = []
        self._on_change = on_change
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="config-poll", daemon=True)
        self._observer: BaseObserver | None = None
        self._existed = path.exists()
        self._empty_since: float | None = None
        self._stamp = self._read_stamp()
        self._text = self._read_text()
        self._at_start = self._loaded = load(self._text, str(path))
        self._announce(self._loaded)

    def current(self) -> Settings:
        """The settings for a call that begins now. One look at the file's stamp (microseconds); reads it only when that changed."""
        if self._read_stamp() != self._stamp:
            self.refresh()
        return self._loaded.settings

    def subscribe(self, on_change: Callable[[Settings], None]) -> None:
        """Has `on_change` called with the new settings after each change from now on, on whichever thread noticed it."""
        self._on_change = on_change

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._loaded.warnings

    def refresh(self) -> None:
        """Reads the file and, if its text changed and is good, puts it in force. Never raises: a bad edit keeps the last good one."""
        with self._lock:
            self._stamp = self._read_stamp()
            try:
                text = self._read_text()
                if self._is_being_saved(text):
                    self._stamp = None  # the next look reads it again
                    return
                if text == self._text and self.error is None:
                    return
                loaded = load(text, str(self.path))
            except ConfigError as error:
                self._refuse(str(error))
                return
            changed = loaded.settings != self._loaded.settings
            self._text, self._loaded, self.error = text, loaded, None
            self.restart_pending = restart_needed(self._at_start.settings, loaded.settings)
        self._announce(loaded)
        if changed and self._on_change:
            self._on_change(loaded.settings)

    def start(self) -> None:
        """Follows the file until `stop`. Events are a bonus: where they can't be had, the poll does it alone."""
        self._poller.start()
        observer = Observer()
        observer.daemon = True
        observer.schedule(_Refresher(self), str(self.path.resolve().parent), recursive=False)
        try:
            observer.start()
        except OSError as error:
            logger.warning("no file events for %s (%s): an edit is seen within %g s instead", self.path, error, POLL_SECONDS)
            return
        self._observer = observer

    def stop(self) -> None:
        """Ends the threads that `start` began."""
        self._stopped.set()
        if self._observer:
            self._observer.stop()
            self._observer.join(timeout=5)
        self._poller.join(timeout=5)

    def _poll(self) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            self.refresh()

    def _read_stamp(self) -> Stamp | None:
        try:
            stat = self.path.stat()
        except OSError:
            return None
        return (stat.st_mtime_ns, stat.st_size, stat.st_ino)

    def _read_text(self) -> str:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            if self._existed:
                raise ConfigError(f"{self.path} is gone", "", "Put it back; it is read again at once") from None
            return "{}"
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.path} can't be read", str(error), "Make it a readable UTF-8 file") from error
        self._existed = True
        return text

    def _is_being_saved(self, text: str) -> bool:
        if text.strip():
            self._empty_since = None
            return False
        now = time.monotonic()
        self._empty_since = self._empty_since or now
        return now - self._empty_since < SAVING_SECONDS

    def _refuse(self, error: str) -> None:
        if error != self.error:
            logger.error("%s The last good settings stay in force.", error)
        self.error = error

    def _announce(self, loaded: Loaded) -> None:
        for warning in loaded.warnings:
            logger.warning("%s", warning)
        if self.restart_pending:
            logger.warning("changed and in force only after a restart: %s", ", ".join(self.restart_pending))


class _Refresher(FileSystemEventHandler):
    """Editors write in place or replace the file by a rename: either way its name is in the event."""

    def __init__(self, config: LiveConfig) -> None:
        self._config = config

    def on_any_event(self, event: FileSystemEvent) -> None:
        name = self._config.path.name
        # Reading the file makes events too: answering those would read it again, for ever.
        if event.event_type in _CHANGES and any(Path(str(path)).name == name for path in (event.src_path, event.dest_path)):
            self._config.refresh()
