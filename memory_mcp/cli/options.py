"""Options that several commands share, their defaults, and the printing of JSON."""

import json
import math
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from memory_mcp.cli.japanese import tell
from memory_mcp.config.reading import (
    default_config_path,
    default_data_directory,
    default_persona,
    default_token,
    load,
)
from memory_mcp.config.settings import Settings
from memory_mcp.errors import ConfigError, InvalidInput
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from memory_mcp.client.connection import Connection
    from memory_mcp.client.stores import Store

T = TypeVar("T")
MEBIBYTE = 1024 * 1024
_ALL_ADDRESSES = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  only compared

Url = Annotated[
    str | None, typer.Option("--url", help="The URL of the server. Default: MEMORY_MCP_URL, or the server on this machine.", metavar="URL")
]
PersonaName = Annotated[
    str | None,
    typer.Option("--persona", "-p", help="The persona. Default: MEMORY_MCP_PERSONA, or the server's default persona.", metavar="NAME"),
]
PoolName = Annotated[str | None, typer.Option("--pool", help="The store of this pool instead of a persona's own.", metavar="NAME")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", help="config.json. Default: MEMORY_MCP_CONFIG, or ./config.json, or that of `memory-mcp stdio`.", metavar="FILE"
    ),
]
DataDirectory = Annotated[
    Path | None,
    typer.Option("--data", help="The data directory. Default: MEMORY_MCP_DATA, or ./memory, or that of `memory-mcp stdio`.", metavar="DIR"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")]


def settings_of(config: Path | None, *, must_exist: bool = False) -> Settings:
    """The settings of `--config`, or of the default config.json; the defaults without such a file. One that is named may have to exist.

    Raises:
        ConfigError: the file can't be read, or is invalid.
    """
    source = config or default_config_path()
    try:
        text = source.read_text(encoding="utf-8") if (config and must_exist) or source.exists() else "{}"
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("{} can't be read", "{}", "Name the file with --config", source, error) from error
    return load(text, str(source)).settings


def existing_data_directory(data: Path | None) -> Path:
    """`--data`, or the default data directory.

    Raises:
        InvalidInput: it is not a directory.
    """
    directory = data or default_data_directory()
    if not directory.is_dir():
        raise InvalidInput("{} is not a data directory", "", "Name the data directory with --data", directory)
    return directory


def command_line(*words: str, persona: str, url: str | None) -> str:
    """A command about a persona, ready to be pasted, on the same server."""
    return shlex.join(["memory-mcp", *words, "--persona", persona, *(["--url", url] if url else [])])


def answer_of(ask: Callable[[], T], do: str) -> T:
    """What a person answers before something is erased.

    Raises:
        InvalidInput: there is no answer, such as without a terminal; `do` is the advice in the error.
    """
    try:
        return ask()
    except typer.Abort as aborted:
        if isinstance(aborted.__context__, EOFError):
            raise InvalidInput("nothing is erased", "there was no answer", "{}", do) from None
        raise


def size_in_words(size_bytes: int) -> str:
    """`9 KiB`, `2.5 MiB`."""
    return f"{size_bytes / MEBIBYTE:.1f} MiB" if size_bytes >= MEBIBYTE else f"{math.ceil(size_bytes / 1024)} KiB"


def memories_in_words(count: int) -> str:
    """`1 memory`, `2,000 memories`."""
    return sentence("{} memory" if count == 1 else "{} memories", f"{count:,}")


def print_json(value: Mapping[str, Any]) -> None:
    """Prints an object as indented JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def end_with_json(answer: Mapping[str, Any], as_json: bool) -> None:
    """Prints an answer as JSON and ends the command, if that is asked for."""
    if as_json:
        print_json(answer)
        raise typer.Exit


def connection(
    url: str | None, persona: str | None, data: Path | None = None, pool: str | None = None, *, as_stored: bool = False
) -> "Connection":
    """A connection by these options, with the token of MEMORY_MCP_TOKEN: to the server of the store that they name. There is no option for the
    token, since all users of a machine can read the arguments of its processes. Says on stderr where another store has the persona and this one
    doesn't. `as_stored`: as `Connection` has it.

    Raises:
        ServerUnreachable: no server serves the data directory that is meant.
        InvalidInput: the options contradict each other, or one of them can't be used.
    """
    store = store_of(url, persona, data, pool, as_stored=as_stored)
    server = store.served()
    if not pool:
        say_where_else(store, persona or default_persona())
    return server


def store_of(
    url: str | None, persona: str | None, data: Path | None = None, pool: str | None = None, *, as_stored: bool = False
) -> "Store":
    """The store that these options name, and its server.

    Raises:
        InvalidInput: as `connection`.
    """
    # Imported here: `--help`, `serve` and `connect` don't need the HTTP client.
    from memory_mcp.client import stores  # noqa: PLC0415
    from memory_mcp.client.connection import Connection  # noqa: PLC0415

    def connect(address: str, secret: str | None = None) -> Connection:
        # Without a persona, a pool is addressed as by the server's owner.
        name = default_persona() if persona is None and not pool else persona
        return Connection(address, default_token(), name, secret, pool, as_stored=as_stored)

    say_what_counts(url, data)
    return stores.find(url, data, configured_address(), connect)


def say_what_counts(url: str | None, data: Path | None) -> None:
    """Says on stderr where `--data` is another store than MEMORY_MCP_URL."""
    from memory_mcp.client import stores  # noqa: PLC0415  as above

    if url is None and (address := stores.overruled_address(data)):
        tell("memory-mcp: --data {} goes before MEMORY_MCP_URL, which names {}", data, address, err=True)


def say_where_else(store: "Store", persona: str | None) -> None:
    """Says on stderr which other stores of this machine have a persona, if this one doesn't: somebody may mean another than this one."""
    from memory_mcp.client import stores  # noqa: PLC0415  as above

    name = persona or stores.UNNAMED
    for options in stores.elsewhere(store, name):
        tell(
            "memory-mcp: {} is new in {}; another store on this machine has one of that name: {}", name, store.directory, options, err=True
        )


def configured_address(config: Path | None = None) -> str:
    """Where a server with this config.json listens, or with the default one."""
    try:
        settings = settings_of(config)
    except ConfigError:
        settings = Settings()  # a client works without it; `serve` and `doctor` report the error
    host = "127.0.0.1" if settings.server_host in _ALL_ADDRESSES else settings.server_host
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.server_port or 8000}"
