"""The composition root: builds every long-lived object, hands each what it needs, starts and stops them in order."""

import gc
import ipaddress
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from memory_mcp import native_heap
from memory_mcp.config.live import LiveConfig
from memory_mcp.config.master_key import master_key
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loading.loaders import Exports, model_shelf
from memory_mcp.encoders.loading.model_registry import ModelShelf
from memory_mcp.encoders.onnx.export_directory import DIRECTORY_NAME as EXPORTS
from memory_mcp.encoders.pool import ModelPool
from memory_mcp.errors import StartupError
from memory_mcp.graph.analytics.analyses import Analyses
from memory_mcp.jobs.chore_worker import Chore, ChoreWorker
from memory_mcp.jobs.chores import background_chores
from memory_mcp.jobs.index_worker import IndexWorker
from memory_mcp.jobs.usage import Usage
from memory_mcp.llm.chat import Chat
from memory_mcp.personas.registry import Personas
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.sqlite import database
from memory_mcp.store.vectors.index_cache import IndexShelf
from memory_mcp.text.tokens import forget_stems
from memory_mcp.upkeep import encryption, legacy_adoption

GRACE_SECONDS = 10
# Clients give an idle connection up after 4 to 60 seconds. Whoever does it first must be the client: a call that it sends while
# the server hangs up is lost, and with uvicorn's 5 seconds that happens to httpx, whose limit is the same.
KEEP_ALIVE_SECONDS = 75

logger = logging.getLogger("memory_mcp")


def _now() -> datetime:
    return datetime.now(UTC)


def serve(
    config_path: Path, data_directory: Path, host: str | None = None, port: int | None = None, clock: Callable[[], datetime] = _now
) -> None:
    """Runs the server until it is told to stop (SIGTERM, Ctrl-C). `host` and `port` go before config.json.

    `clock` answers with an aware datetime: what 昨日 means, and when a memory was stored.

    Raises:
        ConfigError: config.json can't be used.
        StoreError: there is a tokens.json, and it can't be read.
        StartupError: the address or the data directory can't be had, or the key of what is encrypted.
    """
    native_heap.share_heaps()
    database.disable_memory_statistics()
    configure_logging("info")
    config = LiveConfig(config_path)
    settings = config.current()
    configure_logging(settings.log_level)
    address = host or settings.server_host, settings.server_port if port is None else port
    refuse_open_door(address[0], settings, has_tokens=read_tokens(data_directory) is not None)
    keys = Keys(master_key(settings.encryption), settings.encryption.enabled)
    encryption.refuse_without_key(data_directory, keys)
    # Listening begins before the imports below, which take a second: whoever connects meanwhile waits instead of being refused.
    with _listening(*address) as listener, _opened(data_directory, keys) as personas, _adopting(personas) as adopt:
        _run(listener, config, personas, adopt, clock)


def _run(listener: socket.socket, config: LiveConfig, personas: Personas, adopt: Callable[[], None], clock: Callable[[], datetime]) -> None:
    import uvicorn  # noqa: PLC0415  see the comment in `serve`

    from memory_mcp.server.application import http_application, mcp_server  # noqa: PLC0415
    from memory_mcp.server.runtime import Runtime  # noqa: PLC0415

    settings = config.current()
    caches, usage = Caches(), Usage()
    chat = Chat(lambda: config.current().llm)
    with (
        closing(Analyses()) as analyses,
        _index(config, personas, clock, caches) as (models, indexes, worker),
        _upkeep(
            config, personas, clock, background_chores(personas, models.current, indexes, lambda: _forget_cached(caches), usage, chat)
        ) as chores,
    ):
        worker.subscribe(chores.wake)
        runtime = Runtime(
            config=config,
            personas=personas,
            models_for=models.current,
            clock=clock,
            started_at=clock(),
            indexes=indexes,
            index=worker,
            chores=chores,
            forget_cached=lambda: _forget_cached(caches),
            usage=usage,
            analyses=analyses,
        )
        server = mcp_server(settings, on_started=lambda: _begin(config, models, worker, chores, adopt))
        application = http_application(server, runtime, settings)
        # httptools leaves blanks at the end of a header's value; h11 does not, and costs nothing measurable.
        options = uvicorn.Config(
            application,
            http="h11",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        configure_logging(settings.log_level)  # once more: the imports have added handlers of their own
        _announce(listener, config, personas)
        config.start()
        try:
            with _stopping_quietly():
                uvicorn.Server(options).run(sockets=[listener])
        finally:
            config.stop()
            chat.close()
            usage.write_down(personas)
            logger.info("stopped")


@contextmanager
def _index(
    config: LiveConfig, personas: Personas, clock: Callable[[], datetime], caches: Caches
) -> Iterator[tuple[ModelShelf, IndexShelf, IndexWorker]]:
    """The models and the worker that keeps the indexes; nothing of them runs before `_begin`."""
    indexes = IndexShelf()
    pool = ModelPool()
    models = model_shelf(pool, caches, lambda: _settle(worker), exports=Exports(personas.directory / EXPORTS))
    worker = IndexWorker(
        personas, lambda: models.current(config.current()), config.current, indexes, clock, earlier_unneeded=models.retire_earlier
    )
    try:
        yield models, indexes, worker
    finally:
        worker.stop()
        models.close()
        pool.close()


def _forget_cached(caches: Caches) -> None:
    """After memories have been erased: what models answered about them, and the stems of their words."""
    caches.clear()
    forget_stems()


@contextmanager
def _upkeep(config: LiveConfig, personas: Personas, clock: Callable[[], datetime], chores: Sequence[Chore]) -> Iterator[ChoreWorker]:
    """The worker that does the chores; nothing of it runs before `_begin`."""
    worker = ChoreWorker(personas, chores, config.current, clock)
    try:
        yield worker
    finally:
        worker.stop()


def _settle(worker: IndexWorker) -> None:
    """What follows when a model has come or gone."""
    # A model brings a million objects that stay. Walked through by every full collection, they would hold up all calls for a second.
    gc.collect()
    gc.freeze()
    native_heap.return_freed()
    worker.models_changed()


def _begin(config: LiveConfig, models: ModelShelf, worker: IndexWorker, chores: ChoreWorker, adopt: Callable[[], None]) -> None:
    """Loading begins when the server answers: an import of torch that runs beside the start would delay it by seconds."""

    def follow(settings: Settings) -> None:
        logger.setLevel(settings.log_level.upper())
        models.want(settings)
        worker.settings_changed()

    config.subscribe(follow)
    models.start(config.current())
    worker.start()
    chores.start()
    adopt()


def refuse_open_door(host: str, settings: Settings, *, has_tokens: bool) -> None:
    """Listening beyond this machine without tokens hands every memory to whoever reaches the port: only when that is wanted."""
    if not has_tokens and not settings.allow_anonymous and not _is_loopback(host):
        raise StartupError(
            f"refusing to listen on {host}",
            "everyone who reaches that address could read and change every memory",
            "Make a token with `memory-mcp token create`, or listen on 127.0.0.1, "
            "or set allow_anonymous to true in config.json if the network is yours alone",
        )


def configure_logging(level: str) -> None:
    """One line for each event, on stderr, for us and for the libraries alike."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(logging.WARNING)
    logger.setLevel(level.upper())
    for name in ("fastmcp", "uvicorn", "mcp"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
        library.setLevel(logging.ERROR)  # their warnings tell of refused calls, which the caller is told


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP said aloud: only then does asyncio turn off the delay that costs every answer 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise StartupError(
                f"can't listen on {host}:{port}",
                error.strerror or str(error),
                "Stop the program that has the port, or choose another with --port",
            ) from error
        listener.listen(2048)
        yield listener
    finally:
        listener.close()


@contextmanager
def _opened(data_directory: Path, keys: Keys) -> Iterator[Personas]:
    personas = Personas(data_directory, keys=keys)
    try:
        yield personas
    finally:
        personas.close()


@contextmanager
def _adopting(personas: Personas) -> Iterator[Callable[[], None]]:
    """What older servers left is moved into place before anybody is served; what is yielded starts taking over its tables, beside
    the serving: the first takes milliseconds, the second a minute for the largest stores."""
    legacy_adoption.move_into_place(personas, _now())
    stopping = threading.Event()
    # A daemon: what it is in the middle of is one transaction, and the next start does it again.
    thread = threading.Thread(target=legacy_adoption.take_over_tables, args=(personas, stopping), name="adoption", daemon=True)
    try:
        yield thread.start
    finally:
        stopping.set()
        if thread.is_alive():
            thread.join(GRACE_SECONDS)


def _announce(listener: socket.socket, config: LiveConfig, personas: Personas) -> None:
    """The lines that tell a person, and a script that waits for them, where the server is and what it found."""
    host, port = listener.getsockname()[:2]
    names = personas.names()
    logger.info("data in %s: %d persona(s)%s", personas.directory.resolve(), len(names), f" ({', '.join(names[:10])})" if names else "")
    logger.info("settings from %s%s", config.path.resolve(), "" if config.path.exists() else " (not there: defaults)")
    if plain := personas.keys.for_new and encryption.state(personas.directory).plain:
        logger.warning("encryption is on, and %d persona(s) are not encrypted: stop the server and run `memory-mcp encrypt`", len(plain))
    tokens = read_tokens(personas.directory)
    logger.info(
        "tokens: %s", "none, every caller reads and writes all" if tokens is None else f"wanted of every caller, {len(tokens)} known"
    )
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"Memory MCP listens on http://{shown}:{port}\n")
    sys.stderr.flush()


@contextmanager
def _stopping_quietly() -> Iterator[None]:
    """uvicorn repeats the signal that ended it: it must not end us before everything is closed."""
    handled = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: None) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
