"""Follows config.json while the server runs: the next call uses an edit, and an invalid edit changes nothing.

Three mechanisms call the same `refresh`, because each misses something: `current` checks the file's timestamp before every
call, watchdog reports a change between calls, and a poll reads the text where events don't arrive (bind mounts,
network drives) or the timestamp stays the same.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from memory_mcp.config.reading import Loaded, load
from memory_mcp.config.settings import Settings, restart_needed
from memory_mcp.errors import ConfigError

POLL_SECONDS = 1.0
# A program that overwrites a file in place empties it first: a file that has been empty for less than this is not read yet.
SAVING_SECONDS = 0.5

logger = logging.getLogger(__name__)

Stamp = tuple[int, int, int]

_CHANGES = frozenset({"modified", "created", "moved", "deleted", "closed"})


class LiveConfig:
    """The current settings. `error` describes what is wrong with the file now; `restart_pending` lists changed keys that need a restart."""

    def __init__(
        self, path: Path, on_change: Callable[[Settings], None] | None = None, command_line: Mapping[str, str] | None = None
    ) -> None:
        """Reads the file once. A missing file means defaults. `command_line`: the option that overrides a key, by dotted key.

        Raises:
            ConfigError: the file exists and can't be used. The server must not start with other settings than configured.
        """
        self.path = path
        self.command_line = dict(command_line or {})
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
        self._log_warnings(self._loaded)

    def current(self) -> Settings:
        """The settings for a call that starts now. Checks the file's timestamp (microseconds) and reads the file only if that changed."""
        if self._read_stamp() != self._stamp:
            self.refresh()
        return self._loaded.settings

    def subscribe(self, on_change: Callable[[Settings], None]) -> None:
        """Has `on_change` called with the settings of now, and with the new ones after each change, in their order, on the thread that noticed it.
        Calls wait for its end."""
        with self._lock:
            self._on_change = on_change
            on_change(self._loaded.settings)

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._loaded.warnings

    def refresh(self) -> None:
        """Reads the file and applies its text if it changed and is valid. Never raises: after an invalid edit, the last valid settings stay."""
        with self._lock:
            stamp = self._read_stamp()
            try:
                text = self._read_text()
                if self._is_being_saved(text):
                    stamp = None  # so that the next check reads it again
                    return
                if text == self._text and self.error is None:
                    return
                if self._text.strip() and not text.strip():  # rather a disk that is full than a wish for all defaults
                    self._reject(f"{self.path} was emptied. Restore it, or write {{}} for the defaults; it is read again at once.")
                    return
                loaded = load(text, str(self.path))
                changed = loaded.settings != self._loaded.settings
                if self.error:
                    logger.info("%s is in effect again", self.path)
                self._text, self._loaded, self.error = text, loaded, None
                self.restart_pending = restart_needed(self._at_start.settings, loaded.settings)
                self._log_warnings(loaded)
                if changed and self._on_change:
                    self._on_change(loaded.settings)
            except ConfigError as error:
                self._reject(str(error))
                return
            finally:
                # Last: a call that comes while the text is read here waits for the lock, and gets the new settings.
                self._stamp = stamp

    def start(self) -> None:
        """Follows the file until `stop`. If file events are not available, polling alone does it."""
        self._poller.start()
        observer = Observer()
        observer.daemon = True
        observer.schedule(_Refresher(self), str(self.path.resolve().parent), recursive=False)
        try:
            observer.start()
        except OSError as error:
            logger.warning("no file events for %s (%s): an edit takes effect within %g s instead", self.path, error, POLL_SECONDS)
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
                raise ConfigError("{} was deleted", "", "Restore it; it is read again at once", self.path) from None
            return "{}"
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError("{} can't be read", "{}", "Make it a readable UTF-8 file", self.path, error) from error
        self._existed = True
        return text

    def _is_being_saved(self, text: str) -> bool:
        if text.strip():
            self._empty_since = None
            return False
        now = time.monotonic()
        self._empty_since = self._empty_since or now
        return now - self._empty_since < SAVING_SECONDS

    def _reject(self, error: str) -> None:
        if error != self.error:
            logger.error("%s The last valid settings stay in effect.", error)
        self.error = error

    def _log_warnings(self, loaded: Loaded) -> None:
        for warning in loaded.warnings:
            logger.warning("%s", warning)
        if self.restart_pending:
            logger.warning("changed, but takes effect only after a restart: %s", ", ".join(self.restart_pending))


class _Refresher(FileSystemEventHandler):
    """Editors overwrite the file or replace it by a rename: in both cases the event contains its name."""

    def __init__(self, config: LiveConfig) -> None:
        self._config = config

    def on_any_event(self, event: FileSystemEvent) -> None:
        name = self._config.path.name
        # Reading the file also makes events: reacting to those would read it again, forever.
        if event.event_type in _CHANGES and any(Path(str(path)).name == name for path in (event.src_path, event.dest_path)):
            self._config.refresh()
