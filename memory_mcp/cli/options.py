"""Options that several commands share, and what they mean when they are left out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.config.reading import default_config_path, default_server_url, default_token, load
from memory_mcp.config.settings import Settings
from memory_mcp.errors import ConfigError

if TYPE_CHECKING:
    from memory_mcp.client.connection import Connection

_EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  recognised, not listened on

Url = Annotated[str | None, typer.Option("--url", help="The running server. Default: MEMORY_MCP_URL, else this machine.", metavar="URL")]
PersonaName = Annotated[str | None, typer.Option("--persona", "-p", help="Whose memory. Default: what the server says.", metavar="NAME")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="Default: MEMORY_MCP_CONFIG, else ./config.json.", metavar="FILE")]
DataDirectory = Annotated[Path | None, typer.Option("--data", help="Default: MEMORY_MCP_DATA, else ./memory.", metavar="DIR")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")]


def settings_of(config: Path | None) -> Settings:
    """The settings of `--config`, else of the config.json here.

    Raises:
        ConfigError: it can't be read, or used.
    """
    source = config or default_config_path()
    try:
        return load(source.read_text(encoding="utf-8") if config or source.exists() else "{}", str(source)).settings
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source} can't be read", str(error), "Say which file with --config") from error


def connection(url: str | None, persona: str | None) -> "Connection":
    """The server that these options mean, with the token of MEMORY_MCP_TOKEN. There is no option for it: every user of a machine can
    read the arguments of every command."""
    # Needs the HTTP client, which `--help`, `serve` and `connect` do without.
    from memory_mcp.client.connection import Connection  # noqa: PLC0415

    return Connection(server_url(url), default_token(), persona)


def server_url(url: str | None) -> str:
    """`--url`, else MEMORY_MCP_URL, else where a server with the config.json here would listen."""
    return url or default_server_url() or _configured_url(default_config_path())


def _configured_url(path: Path) -> str:
    try:
        settings = load(path.read_text(encoding="utf-8") if path.exists() else "{}", str(path)).settings
    except (OSError, UnicodeDecodeError, ConfigError):
        settings = Settings()  # a client can do without it; `serve` and `doctor` say what is wrong with it
    host = "127.0.0.1" if settings.server_host in _EVERYWHERE else settings.server_host
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.server_port or 8000}"
