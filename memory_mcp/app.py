"""The composition root: builds every long-lived object, hands each what it needs, starts and stops them in order."""

import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from memory_mcp.config.live import LiveConfig
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.loaders import model_shelf
from memory_mcp.encoders.pool import ModelPool
from memory_mcp.encoders.shelf import ModelShelf
from memory_mcp.errors import StartupError
from memory_mcp.jobs.worker import IndexWorker
from memory_mcp.personas.registry import Personas
from memory_mcp.store.index_shelf import IndexShelf

GRACE_SECONDS = 10
# Clients give an idle connection up after 4 to 60 seconds. Whoever does it first must be the client: a call that it sends while
# the server hangs up is lost, and with uvicorn's 5 seconds that happens to httpx, whose limit is the same.
KEEP_ALIVE_SECONDS = 75

logger = logging.getLogger("memory_mcp")


def serve(config_path: Path, data_directory: Path, host: str | None = None, port: int | None = None) -> None:
    """Runs the server until it is told to stop (SIGTERM, Ctrl-C). `host` and `port` go before config.json.

    Raises:
        ConfigError: config.json can't be used.
        StartupError: the address or the data directory can't be had.
    """
    configure_logging("info")
    config = LiveConfig(config_path)
    settings = config.current()
    configure_logging(settings.log_level)
    address = host or settings.server_host, settings.server_port if port is None else port
    refuse_open_door(address[0], settings)
    # Listening begins before the imports below, which take a second: whoever connects meanwhile waits instead of being refused.
    with _listening(*address) as listener, _opened(data_directory) as personas:
        _run(listener, config, personas)


def _run(listener: socket.socket, config: LiveConfig, personas: Personas) -> None:
    import uvicorn  # noqa: PLC0415  see the comment in `serve`

    from memory_mcp.server.mcp_server import http_application, mcp_server  # noqa: PLC0415
    from memory_mcp.server.runtime import Runtime  # noqa: PLC0415

    settings = config.current()
    with _index(config, personas) as (models, indexes, worker):
        runtime = Runtime(
            config=config, personas=personas, models_for=models.current, clock=_now, started_at=_now(), indexes=indexes, index=worker
        )
        application = http_application(mcp_server(settings, on_started=lambda: _begin(config, models, worker)), runtime, settings)
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
            logger.info("stopped")


@contextmanager
def _index(config: LiveConfig, personas: Personas) -> Iterator[tuple[ModelShelf, IndexShelf, IndexWorker]]:
    """The models and the worker that keeps the indexes; nothing of them runs before `_begin`."""
    indexes = IndexShelf()
    pool = ModelPool()
    models = model_shelf(pool, Caches(), on_change=lambda: worker.models_changed())
    worker = IndexWorker(
        personas, lambda: models.current(config.current()), config.current, indexes, _now, earlier_unneeded=models.retire_earlier
    )
    try:
        yield models, indexes, worker
    finally:
        worker.stop()
        models.close()
        pool.close()


def _begin(config: LiveConfig, models: ModelShelf, worker: IndexWorker) -> None:
    """Loading begins when the server answers: an import of torch that runs beside the start would delay it by seconds."""

    def follow(settings: Settings) -> None:
        logger.setLevel(settings.log_level.upper())
        models.want(settings)
        worker.settings_changed()

    config.subscribe(follow)
    models.start(config.current())
    worker.start()


def refuse_open_door(host: str, settings: Settings) -> None:
    """Listening beyond this machine without tokens hands every memory to whoever reaches the port: only when that is wanted."""
    if not settings.allow_anonymous and not _is_loopback(host):
        raise StartupError(
            f"refusing to listen on {host}",
            "everyone who reaches that address could read and change every memory",
            "Listen on 127.0.0.1, or set allow_anonymous to true in config.json if the network is yours alone",
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


def _now() -> datetime:
    return datetime.now(UTC)


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
def _opened(data_directory: Path) -> Iterator[Personas]:
    personas = Personas(data_directory)
    try:
        yield personas
    finally:
        personas.close()


def _announce(listener: socket.socket, config: LiveConfig, personas: Personas) -> None:
    """The lines that tell a person, and a script that waits for them, where the server is and what it found."""
    host, port = listener.getsockname()[:2]
    names = personas.names()
    logger.info("data in %s: %d persona(s)%s", personas.directory.resolve(), len(names), f" ({', '.join(names[:10])})" if names else "")
    logger.info("settings from %s%s", config.path.resolve(), "" if config.path.exists() else " (not there: defaults)")
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
