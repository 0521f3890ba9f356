"""The composition root: creates every long-lived object with its dependencies, and starts and stops them in order."""

import gc
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memory_mcp import __version__, process, tracing
from memory_mcp.config.live import LiveConfig
from memory_mcp.config.master_key import master_key
from memory_mcp.config.reading import spans_wanted
from memory_mcp.config.settings import Settings
from memory_mcp.config.values import is_loopback
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import Exports, build_registry
from memory_mcp.encoders.loading.model_registry import ModelRegistry
from memory_mcp.encoders.onnx.background import BackgroundExport
from memory_mcp.encoders.onnx.export_directory import DIRECTORY_NAME as EXPORTS
from memory_mcp.encoders.torch import devices
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import NotInstalled, StartupError
from memory_mcp.extras import is_installed
from memory_mcp.jobs.chore_worker import ChoreWorker
from memory_mcp.jobs.chores import ChoreParts, background_chores
from memory_mcp.jobs.index_worker import IndexWorker
from memory_mcp.jobs.step_thread import StepThread
from memory_mcp.jobs.usage_counts import Usage
from memory_mcp.language.analysis import forget_texts
from memory_mcp.language.privacy.redaction import forget_short_texts
from memory_mcp.llm.chat import Chat
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.registry import Personas
from memory_mcp.personas.server_lock import announce, instance_of
from memory_mcp.process import FreedMemory
from memory_mcp.server import logs
from memory_mcp.server.bounds import Bounds
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.sqlite import database
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import encryption
from memory_mcp.upkeep.older_data import adopters

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

GRACE_SECONDS = 10
# Clients close an idle connection after 4 to 60 seconds, and the client must do so first: a call sent while the server closes
# the connection is lost. With uvicorn's default of 5 seconds that happens to httpx, which has the same limit.
KEEP_ALIVE_SECONDS = 75

logger = logs.PRODUCT


def _now() -> datetime:
    return datetime.now(UTC)


class InnerServer:
    """A server in a thread of this process. It listens on a free port of this machine, and answers only to those who can read its note in
    the data directory."""

    def __init__(self, config_path: Path, data_directory: Path) -> None:
        """Starts it, and returns as soon as its note is written; it answers a little later.

        Raises: as `serve`.
        """
        self._paths = config_path, data_directory
        self._announced: Future[None] = Future()
        self._uvicorn: uvicorn.Server | None = None
        self._stopped = False
        self.yielded_at: float | None = None
        self._thread = threading.Thread(target=self._serve, name="server")
        self._thread.start()
        try:
            self._announced.result()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Finishes the calls that it has begun, closes everything, and releases the lock."""
        self._end()
        self._thread.join()

    def yield_lock(self) -> None:
        """Called when another server asks for the data directory: stops as soon as it can."""
        self.yielded_at = time.monotonic()
        self._end()

    def _end(self) -> None:
        self._stopped = True
        if self._uvicorn:
            self._uvicorn.should_exit = True

    def announced(self) -> None:
        """Called when the note is written."""
        self._announced.set_result(None)

    def running(self, server: "uvicorn.Server") -> None:
        """Called when it is about to answer."""
        self._uvicorn = server
        if self._stopped:
            server.should_exit = True

    def _serve(self) -> None:
        try:
            serve(*self._paths, "127.0.0.1", 0, inner=self)
        except BaseException as error:
            if self._announced.done():
                raise
            self._announced.set_exception(error)


def serve(
    config_path: Path,
    data_directory: Path,
    host: str | None = None,
    port: int | None = None,
    clock: Callable[[], datetime] = _now,
    inner: InnerServer | None = None,
) -> None:
    """Runs the server until SIGTERM or Ctrl-C, or until `inner` is stopped. `host` and `port` override config.json.

    `clock` returns an aware datetime, which determines what 昨日 means and when a memory was stored.

    Raises:
        ConfigError: config.json can't be used.
        StoreError: tokens.json exists and can't be read.
        DirectoryInUse: another server uses the data directory.
        StartupError: the address or the data directory is not available, or the key of encrypted personas is missing.
    """
    process.share_heaps()
    process.allow_open_files()
    database.disable_memory_statistics()
    logs.hold()
    options = {"server_host": ("--host", host), "server_port": ("--port", port)}
    config = LiveConfig(config_path, command_line={key: option for key, (option, value) in options.items() if value is not None})
    settings = config.current()
    logs.configure(settings.log_level, settings.log_format)
    address = host or settings.server_host, settings.server_port if port is None else port
    requires_tokens = settings.oauth.is_on or read_tokens(data_directory) is not None
    refuse_anonymous_access(address[0], settings, has_tokens=requires_tokens)
    keys = Keys(master_key(settings.encryption), settings.encryption.enabled)
    # Listening starts before the imports below, which take a second: clients that connect meanwhile wait instead of being refused.
    with _listening(*address) as listener, _opened(data_directory, keys, settings) as personas, _adopting(personas) as adopt:
        secret = secrets.token_urlsafe(32)
        announce(data_directory, _url_of(listener), secret, yields=inner is not None)
        if inner:
            inner.announced()
        _run(listener, config, personas, adopt, clock, secret, inner)


def _run(
    listener: socket.socket,
    config: LiveConfig,
    personas: Personas,
    adopt: Callable[[], None],
    clock: Callable[[], datetime],
    secret: str,
    inner: InnerServer | None,
) -> None:
    gc.disable()  # until `quicken_calls`: a twelfth of a start would go to walking what the imports make, which stays anyway
    from memory_mcp.server.application import http_application, mcp_server  # noqa: PLC0415
    from memory_mcp.server.feature import features  # noqa: PLC0415
    from memory_mcp.server.mcp.tools import TOOLSETS  # noqa: PLC0415
    from memory_mcp.server.runtime import Runtime  # noqa: PLC0415

    settings = config.current()
    caches, usage = Caches(), Usage()
    forget_cached = partial(_forget_cached, caches, usage)
    chat = Chat(lambda: config.current().llm)
    with (
        _spans(),
        _index(config, personas, clock, caches) as (models, indexes, worker),
        _upkeep(config, clock, ChoreParts(personas, models.current, indexes, forget_cached, usage, chat)) as chores,
    ):
        worker.subscribe(chores.wake, chores.note_call)
        runtime = Runtime(
            config=config,
            personas=personas,
            models_for=models.current,
            clock=clock,
            started_at=clock(),
            indexes=indexes,
            index=worker,
            chores=chores,
            forget_cached=forget_cached,
            usage=usage,
            instance=instance_of(secret),
            secret=secret if inner else None,
            yield_lock=inner.yield_lock if inner else None,
            conversing=next(filter(None, (feature.conversing(config.current) for feature in features())), None),
        )
        server = mcp_server(settings, on_started=lambda: _start_background(config, models, worker, chores, adopt))
        bounds = Bounds()
        uvicorn_server = _http_server(http_application(server, runtime, settings, bounds), bounds)
        logs.configure(settings.log_level, settings.log_format)  # again: the imports have added handlers
        has_pages = any(feature.refusal_page for feature in features())
        _log_start(listener, config, personas, is_inner=inner is not None, has_pages=has_pages)
        _log_absent(settings, TOOLSETS, has_pages=has_pages)
        config.start()
        _end_first(uvicorn_server, runtime.runs.end)
        if inner:
            inner.running(uvicorn_server)
        try:
            with nullcontext() if inner else _ignoring_repeated_signals():
                uvicorn_server.run(sockets=[listener])
        finally:
            gc.enable()
            for close in (config.stop, runtime.imports.close, runtime.close, chat.close, partial(usage.write_all, personas)):
                close()
            logger.info("stopped")


def _http_server(application: "ASGIApp", bounds: Bounds) -> "uvicorn.Server":
    import uvicorn  # noqa: PLC0415  see the comment in `serve`

    from memory_mcp.server.connection import Connection  # noqa: PLC0415

    # On h11: httptools keeps spaces at the end of a header's value; h11 does not, at no measurable cost.
    options = uvicorn.Config(
        application,
        http=partial(Connection, bounds=bounds),  # type: ignore[arg-type]  # it only calls the class
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    return uvicorn.Server(options)


def _end_first(server: "uvicorn.Server", end: Callable[[], None]) -> None:
    """Ends what would otherwise keep a server from stopping for as long as a model talks."""
    shutdown = server.shutdown

    async def ending(sockets: list[socket.socket] | None = None) -> None:
        end()
        await shutdown(sockets)

    server.shutdown = ending  # type: ignore[method-assign]


def _spans() -> AbstractContextManager[None]:
    """Sends spans where OTEL_* names a collector."""
    if spans_wanted() and is_installed("otel"):
        return tracing.exported(__version__)
    if spans_wanted():
        logger.warning("%s", NotInstalled("no spans are sent to the collector that OTEL_* names", "otel"))
    return nullcontext()


@contextmanager
def _index(
    config: LiveConfig, personas: Personas, clock: Callable[[], datetime], caches: Caches
) -> Iterator[tuple[ModelRegistry, IndexCache, IndexWorker]]:
    """The models and the index worker; they start in `_start_background`."""
    indexes = IndexCache()
    pool = ModelPool()
    background = BackgroundExport()
    exports = Exports(personas.directory / EXPORTS, background)
    models = build_registry(pool, caches, lambda: _models_changed(worker, gave_up=models.gave_up()), exports)
    worker = IndexWorker(
        personas, lambda: models.current(config.current()), config.current, indexes, clock, earlier_unneeded=models.retire_earlier
    )
    try:
        yield models, indexes, worker
    finally:
        worker.stop()
        background.close()
        models.close()
        pool.close()


def _forget_cached(caches: Caches, usage: Usage) -> None:
    """Empties, after memories have been erased, the caches of model results and of texts, and forgets what was asked."""
    caches.clear()
    forget_texts()
    forget_short_texts()
    usage.forget_queries()


@contextmanager
def _upkeep(config: LiveConfig, clock: Callable[[], datetime], parts: ChoreParts) -> Iterator[ChoreWorker]:
    """The worker that does the chores, those of features last; it starts in `_start_background`. Beside it freed memory is given back."""
    from memory_mcp.server.feature import features, names  # noqa: PLC0415  see the comment in `serve`

    chores = [*background_chores(parts, names), *(chore for feature in features() for chore in feature.chores(parts))]
    worker = ChoreWorker(parts.personas, chores, config.current, clock)
    memory = StepThread("freed memory", FreedMemory().step)
    memory.start()
    try:
        yield worker
    finally:
        memory.stop()
        worker.stop()


def _models_changed(worker: IndexWorker, *, gave_up: bool) -> None:
    """Adapts memory management and the index worker to a change of the loaded models. `gave_up`: one of them is no longer wanted."""
    if gave_up:
        gc.unfreeze()  # it refers to itself, and only a full collection frees it
    # A model adds a million permanent objects. Traversing them in every full collection would block all calls for a second.
    gc.collect()
    gc.freeze()
    process.return_freed()
    devices.return_freed()
    worker.models_changed()


def _start_background(
    config: LiveConfig, models: ModelRegistry, worker: IndexWorker, chores: ChoreWorker, adopt: Callable[[], None]
) -> None:
    """Starts loading models and all background work. Called when the server answers, because importing torch during the start would delay it."""

    def follow(settings: Settings) -> None:
        logs.configure(settings.log_level, settings.log_format)
        models.configure(settings)
        worker.settings_changed()

    config.subscribe(follow)
    models.start(config.current())
    worker.start()
    chores.start()
    adopt()


def refuse_anonymous_access(host: str, settings: Settings, *, has_tokens: bool) -> None:
    """Refuses to listen on other than loopback addresses without tokens, unless the user allows it."""
    if not has_tokens and not settings.allow_anonymous and not is_loopback(host):
        raise StartupError(
            "refusing to listen on {}",
            "everyone who can reach that address could read and change every memory",
            "Create a token with `memory-mcp token create --persona NAME`, or listen on 127.0.0.1, or set allow_anonymous to true in config.json if you trust everyone in the network",
            host,
        )


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Explicit IPPROTO_TCP: only then does asyncio turn off the delay that costs every answer 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # on Windows it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise StartupError(
                "can't listen on {}:{}",
                "{}",
                "Stop the program that uses the port, or choose another with --port",
                host,
                port,
                error.strerror or str(error),
            ) from error
        listener.listen(2048)
        yield listener
    finally:
        listener.close()


@contextmanager
def _opened(data_directory: Path, keys: Keys, settings: Settings) -> Iterator[Personas]:
    personas = Personas(data_directory, keys=keys, log_rotation=settings.operations_log.rotation, cell=Cell.configured(settings.cell))
    try:
        encryption.refuse_without_key(data_directory, keys, personas.index.directories(encrypted=True))
        yield personas
    finally:
        personas.close()


@contextmanager
def _adopting(personas: Personas) -> Iterator[Callable[[], None]]:
    """Moves the files of older versions into place before the server answers, which takes milliseconds. Yields a function that starts the
    conversion of their tables in the background, which takes up to a minute for the largest stores.
    """
    for adopter in adopters():
        adopter.move(personas, _now())
    stopping = threading.Event()

    def take_over() -> None:
        for adopter in adopters():
            adopter.take_over(personas, stopping)

    # A daemon: an interrupted conversion is one transaction, which the next start repeats.
    thread = threading.Thread(target=take_over, name="adoption", daemon=True)
    try:
        yield thread.start
    finally:
        stopping.set()
        if thread.is_alive():
            thread.join(GRACE_SECONDS)


def _log_start(listener: socket.socket, config: LiveConfig, personas: Personas, *, is_inner: bool, has_pages: bool) -> None:
    """Logs where the server is and what it found, for users and for scripts that wait for it."""
    names, count = personas.names(limit=10), personas.count()
    logger.info("data in %s: %d persona(s)%s", personas.directory.resolve(), count, f" ({', '.join(names)})" if names else "")
    if not personas.cell.is_whole:
        logger.info("this is %s", personas.cell)
    logger.info("settings from %s%s", config.path.resolve(), "" if config.path.exists() else " (missing: defaults)")
    if plain := personas.keys.for_new and personas.index.directories(encrypted=False):
        logger.warning("encryption is on, but %d persona(s) are not encrypted: stop the server and run `memory-mcp encrypt`", len(plain))
    tokens = read_tokens(personas.directory)
    oauth = config.current().oauth
    is_open = tokens is None and not oauth.is_on
    everybody = "this user's `memory-mcp` commands" if is_inner else "every caller"
    logger.info("tokens: %s", f"none, {everybody} can read and write everything" if is_open else f"required, {len(tokens or {})} exist")
    if oauth.is_on:
        logger.info("OAuth: the authorization server is %s, this server is %s", oauth.issuer or "built in", oauth.public_url)
    logs.announce(f"Memory MCP listens on {_url(*listener.getsockname()[:2])}")
    if not is_inner and has_pages:
        logs.announce(f"Its dashboard: {_url_of(listener)}/ui")


def _log_absent(settings: Settings, toolsets: Collection[str], *, has_pages: bool) -> None:
    """Warns of settings that only a feature whose folder is gone could follow."""
    for name in settings.toolsets:
        if name not in toolsets:
            logger.warning("toolsets names %s, and nothing here brings its tools", name)
    if settings.oauth.authorization_server == "built_in" and not has_pages:
        logger.warning(
            "oauth.authorization_server is built_in, and without the dashboard there is no page on which people grant clients anything"
        )


def _url_of(listener: socket.socket) -> str:
    """Where programs on this machine reach it."""
    host, port = listener.getsockname()[:2]
    return _url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)  # noqa: S104  only compared


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@contextmanager
def _ignoring_repeated_signals() -> Iterator[None]:
    """Ignores the signal that uvicorn raises again after it has stopped, so that everything is closed first."""
    signals = (signal.SIGTERM, signal.SIGINT)
    previous = {number: signal.signal(number, lambda *_: None) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
