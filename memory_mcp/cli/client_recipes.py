"""How each client wants an MCP server written into its settings: where, under which key, in which words."""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import tomlkit
import yaml

from memory_mcp.errors import InvalidInput

# The token itself is never printed or written, since terminals, logs and shell histories keep their output.
PASTE = "PASTE-THE-TOKEN-HERE"
VARIABLE = "MEMORY_MCP_TOKEN"
QUESTION = "memory-token"
_PERSONA_PATH = re.compile(r"/p/([^/]+)/mcp/?$")
_PLAIN = re.compile(r"[\w./:=@%+\\-]+", re.ASCII)


class ClientName(StrEnum):
    VSCODE = "vscode"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CURSOR = "cursor"
    GEMINI = "gemini"
    CLAUDE_DESKTOP = "claude-desktop"
    WINDSURF = "windsurf"
    ZED = "zed"
    CLINE = "cline"
    ROO = "roo"
    GOOSE = "goose"
    LMSTUDIO = "lmstudio"
    LIBRECHAT = "librechat"
    OPEN_WEBUI = "open-webui"
    SILLYTAVERN = "sillytavern"
    N8N = "n8n"
    CLAUDE_AI = "claude-ai"
    CHATGPT = "chatgpt"


class Form(StrEnum):
    """How a settings file is written."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class Target:
    """The server, persona and authentication for the settings of a client. `name` is what the client calls the server."""

    base_url: str
    persona: str
    with_token: bool = False
    name: str = "memory"
    by_stdio: bool = False
    stdio_arguments: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return f"{self.base_url}/mcp"

    @property
    def persona_url(self) -> str:
        """The address that names the persona itself, for clients that can't send headers.

        Raises:
            InvalidInput: the name can't be in a URL.
        """
        if self.persona in (".", ".."):  # the URL would normalize to /mcp, which is the default persona
            raise InvalidInput(
                "the persona {} can't be named in a URL", "clients remove such path segments", "Choose another name", repr(self.persona)
            )
        return f"{self.base_url}/p/{quote(self.persona, safe='')}/mcp"

    @property
    def gateway_url(self) -> str:
        """The address for clients of OpenAI's API that can't send headers."""
        return f"{self.persona_url.removesuffix('/mcp')}/v1"

    def headers(self, token: str | None = PASTE) -> dict[str, str]:
        """The HTTP headers, percent-encoded: Node's `Headers`, which most clients use, rejects raw Japanese. `token` is the client's
        placeholder for the token; None: the client is given it otherwise."""
        persona = {"X-Persona": quote(self.persona, safe="")}
        return {**persona, "Authorization": f"Bearer {token}"} if self.with_token and token else persona

    def command(self) -> list[str]:
        """The command for MCP on stdin and stdout, with its full path, since desktop programs don't see the commands of a virtual
        environment."""
        return [*self._program(), "stdio", "--persona", self.persona, *self.stdio_arguments]

    def hook(self) -> str:
        """The command line that the client's hooks run."""
        program = " ".join(_quoted(word) for word in self._program())
        return " ".join([f"{program} {self.hook_of_persona}", *(_quoted(word) for word in self.stdio_arguments)])

    @property
    def hook_of_persona(self) -> str:
        """The part of a hook's command line that identifies this persona, whatever its program and server."""
        return hook_of(self.persona)

    @staticmethod
    def _program() -> list[str]:
        command = shutil.which("memory-mcp", path=str(Path(sys.executable).parent)) or shutil.which("memory-mcp")
        return [command] if command else [sys.executable, "-m", "memory_mcp"]


def hook_of(persona: str) -> str:
    """The part of a hook's command line that identifies a persona."""
    return f"hook --persona {_quoted(persona)}"


@dataclass(frozen=True, slots=True)
class Hooks:
    """Where a client's hooks are, and the events at which `memory-mcp hook` runs: a beginning, and what ends a conversation or compacts it.
    `in_groups`: each command is in a group, as with Claude Code. `timeout` is how long a hook may take, where the client's own limit is
    shorter than an import takes, in the client's unit."""

    file: Callable[[], Path]
    events: tuple[str, ...]
    in_groups: bool = True
    timeout: int | None = None

    def tree(self, target: Target) -> dict[str, Any]:
        """The hooks file with nothing but ours."""
        limit = {"timeout": self.timeout} if self.timeout else {}
        hook = {"type": "command", "command": target.hook(), **limit}
        return {"hooks": {event: [{"hooks": [hook]} if self.in_groups else hook] for event in self.events}}


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of a client.

    `file` is where `--write` puts them, None where a person has to. `keys` leads to the table of servers. `url`, `headers`, `command`
    and `variables` (of its environment) are what the client calls them; `placeholder` is how it names a secret, `variable_field` a field of its own for the name of the variable.
    `shown` prints something else than the file's content. `gateway` prints how a client of OpenAI's API is given a memory without tools, at
    `gateway_location`; one that has no other way has no `instructions`. `for_user` has what differs where the settings are for all projects of the user.
    """

    location: str
    instructions: str
    file: Callable[[], Path] | None = None
    instructions_file: Path | None = None
    form: Form = Form.JSON
    keys: tuple[str, ...] = ("mcpServers",)
    by_http: Mapping[str, Any] = field(default_factory=dict)
    by_stdio: Mapping[str, Any] = field(default_factory=dict)
    url: str = "url"
    headers: str = "headers"
    command: str = "command"
    variables: str = "env"
    placeholder: str = PASTE
    variable_field: str | None = None
    only_stdio: bool = False
    shown: Callable[[Target], str] | None = None
    gateway: Callable[[Target], str] | None = None
    gateway_location: str = ""
    hooks: Hooks | None = None
    for_user: Callable[[], Mapping[str, Any]] | None = None

    def entry(self, target: Target) -> dict[str, Any]:
        """The server in the table of servers."""
        if target.by_stdio or self.only_stdio:
            program, *arguments = target.command()
            variables = {self.variables: {VARIABLE: PASTE}} if target.with_token else {}
            return {**self._named(self.by_stdio, target), self.command: program, "args": arguments, **variables}
        secret = {self.variable_field: VARIABLE} if self.variable_field and target.with_token else {}
        headers = target.headers(None if self.variable_field else self.placeholder)
        return {**self._named(self.by_http, target), self.url: target.url, self.headers: headers, **secret}

    def tree(self, target: Target) -> dict[str, Any]:
        """The settings file with nothing but the server."""
        tree: dict[str, Any] = {target.name: self.entry(target)}
        for key in reversed(self.keys):
            tree = {key: tree}
        return {"inputs": [_question()], **tree} if self.asks(target) else tree

    def personas_in(self, tree: Mapping[str, Any]) -> dict[str, str]:
        """The personas of our servers in a settings file, by what the client calls these."""
        return {name: persona for name, entry in entries_in(tree, self.keys).items() if (persona := self._persona_of(entry))}

    def is_ours(self, entry: Any) -> bool:
        """Whether an entry of the table of servers is one of Memory MCP: other programs call theirs `memory`, too."""
        return self._persona_of(entry) is not None or self._starts_ours(entry)

    def _persona_of(self, entry: Any) -> str | None:
        if not isinstance(entry, Mapping):
            return None
        headers, arguments = entry.get(self.headers), entry.get("args")
        if isinstance(headers, Mapping) and "X-Persona" in headers:
            return unquote(str(headers["X-Persona"]))
        if isinstance(arguments, list) and "--persona" in arguments[:-1] and self._starts_ours(entry):
            return str(arguments[arguments.index("--persona") + 1])
        path = _PERSONA_PATH.search(str(entry.get(self.url, "")))
        return unquote(path[1]) if path else None

    def _starts_ours(self, entry: Any) -> bool:
        """Whether an entry runs `memory-mcp stdio`, by whatever program."""
        if not isinstance(entry, Mapping) or not isinstance(entry.get("args"), list):
            return False
        words = [str(entry.get(self.command, "")), *map(str, entry["args"])]
        return "stdio" in words and any(name in word for word in words for name in ("memory-mcp", "memory_mcp"))

    def asks(self, target: Target) -> bool:
        """Whether the client asks its user for the token, and keeps it in its secret storage."""
        return self.placeholder.startswith("${input:") and target.with_token and not target.by_stdio

    def text(self, target: Target) -> str:
        """What is printed.

        Raises:
            InvalidInput: the client can't start a server itself.
        """
        if target.by_stdio and self.shown and not self.file:
            raise InvalidInput("this client can't start a server itself", "", "Remove --stdio")
        return self.shown(target) if self.shown else dumped(self.tree(target), self.form)

    @staticmethod
    def _named(fields: Mapping[str, Any], target: Target) -> dict[str, Any]:
        return {key: target.name if value == "{name}" else value for key, value in fields.items()}


def entries_in(tree: Mapping[str, Any], keys: tuple[str, ...]) -> Mapping[str, Any]:
    """The table of servers in a settings file; empty if there is none."""
    table: Any = tree
    for key in keys:
        table = table.get(key) if isinstance(table, Mapping) else None
    return table if isinstance(table, Mapping) else {}


def dumped(tree: Mapping[str, Any], form: Form, indent: str | int = 2) -> str:
    """A settings file as text, without a last line feed."""
    match form:
        case Form.JSON:
            return json.dumps(tree, ensure_ascii=False, indent=indent)
        case Form.TOML:
            return tomlkit.dumps(tree).rstrip()
        case Form.YAML:
            return str(yaml.safe_dump(dict(tree), allow_unicode=True, sort_keys=False)).rstrip()


def _question() -> dict[str, Any]:
    """VS Code asks once for an `input` and keeps it in its secret storage."""
    return {"type": "promptString", "id": QUESTION, "description": "Token of Memory MCP", "password": True}


def _claude_code(target: Target, scope: str = "") -> str:
    """With a token, an entry in the project's `.mcp.json` that names the variable, since other users can read arguments."""
    scope = scope or ("project" if target.with_token and not target.by_stdio else "")
    option = f"--scope {scope} " if scope else ""
    if target.by_stdio:
        return f"claude mcp add {option}{target.name} -- {' '.join(_quoted(word) for word in target.command())}"
    quoted = "'" if target.with_token else '"'
    headers = " ".join(f"--header {quoted}{name}: {value}{quoted}" for name, value in target.headers(f"${{{VARIABLE}}}").items())
    return f"claude mcp add --transport http {option}{target.name} {target.url} {headers}"


def _quoted(word: str) -> str:
    """A word of a command line for sh and for Windows' cmd."""
    if _PLAIN.fullmatch(word):
        return word
    return f'"{word}"' if os.name == "nt" else shlex.quote(word)


def _claude_directory() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def _claude_code_of_user() -> Mapping[str, Any]:
    directory = _claude_directory()
    return {
        "file": lambda: (directory if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()) / ".claude.json",
        "instructions": str(directory / "CLAUDE.md"),
        "instructions_file": directory / "CLAUDE.md",
        "shown": lambda target: _claude_code(target, "user"),
        "hooks": replace(_CLAUDE_HOOKS, file=lambda: directory / "settings.json"),
    }


def _vscode_file_of_user() -> Path:
    within = Path("Code/User/mcp.json")
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support" / within
    return (_app_data() if os.name == "nt" else Path.home() / ".config") / within


def _open_webui(target: Target) -> str:
    """The persona in the URL, because not every version sends headers."""
    lines = ["Type   MCP (Streamable HTTP)", f"URL    {target.persona_url}"]
    lines.append(f"Auth   Bearer {PASTE}" if target.with_token else "Auth   None")
    elsewhere = "From a container this machine is not 127.0.0.1: run the server in the same compose network and use its service name there."
    return "\n".join([*lines, "", elsewhere])


def _sillytavern(target: Target) -> str:
    """The persona in the URL: a header there holds Latin letters alone."""
    lines = [
        "API                         Chat Completion",
        "Chat Completion Source      Custom (OpenAI-compatible)",
        f"Custom Endpoint (Base URL)  {target.gateway_url}",
        f"Custom API Key              {PASTE if target.with_token else 'none'}",
        "Enter a Model ID            VENDOR/MODEL",
    ]
    each = "To give each character with a name in Latin letters a memory of its own, use this endpoint and this header instead:"
    headers = "Additional Parameters → Include Request Headers:"
    own = [f"Custom Endpoint (Base URL)  {target.base_url}/v1", headers, 'X-Persona: "{{char}}"']
    return "\n".join([*lines, "", each, *own])


def _open_webui_gateway(target: Target) -> str:
    lines = [f"URL    {target.gateway_url}", f"Auth   Bearer {PASTE}" if target.with_token else "Auth   None"]
    return "\n".join(
        [*lines, "", "Start Open WebUI with ENABLE_FORWARD_USER_INFO_HEADERS=true, so that each of its chats is a conversation."]
    )


def _librechat_gateway(target: Target) -> str:
    endpoint = {
        "name": target.name.capitalize(),
        "apiKey": f"${{{VARIABLE}}}" if target.with_token else "none",
        "baseURL": f"{target.base_url}/v1",
        "headers": {"X-Persona": quote(target.persona, safe=""), "X-Session": "{{LIBRECHAT_BODY_CONVERSATIONID}}"},
        "models": {"fetch": True, "default": ["VENDOR/MODEL"]},
        "titleConvo": False,
    }
    note = '# For a persona of each user: X-Persona: "{{LIBRECHAT_USER_NAME}}"'
    return f"{dumped({'endpoints': {'custom': [endpoint]}}, Form.YAML)}\n{note}"


def _n8n(target: Target) -> str:
    lines = ["Node              MCP Client Tool", f"Endpoint          {target.persona_url}", "Server Transport  HTTP Streamable"]
    lines.append(f"Authentication    Bearer Auth, {PASTE}" if target.with_token else "Authentication    None")
    return "\n".join(lines)


def _public(target: Target) -> str:
    """The vendors' own servers call the memory, so it needs an address in the internet, and OAuth."""
    address = (
        target.persona_url if target.base_url.startswith("https://") else target.persona_url.replace(target.base_url, "https://YOUR-SERVER")
    )
    return "\n".join([f"Name            {target.name}", f"URL             {address}", "Authentication  OAuth"])


def _app_data() -> Path:
    """Where programs of Windows keep their settings."""
    return Path(os.environ.get("APPDATA", Path.home() / "AppData/Roaming"))


def _claude_desktop_file() -> Path:
    name = "claude_desktop_config.json"
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/Claude" / name
    if os.name == "nt":
        return _app_data() / "Claude" / name
    return Path.home() / ".config/Claude" / name


def _zed_file() -> Path:
    if os.name == "nt":
        return _app_data() / "Zed/settings.json"
    return Path.home() / ".config/zed/settings.json"


def _goose_file() -> Path:
    if os.name == "nt":
        return _app_data() / "Block/goose/config/config.yaml"
    return Path.home() / ".config/goose/config.yaml"


def _codex_file() -> Path:
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"


_AGENTS, _SYSTEM_PROMPT = Path("AGENTS.md"), "the chat's system prompt"
_TO_ENVIRONMENT = f"${{env:{VARIABLE}}}"
_CLAUDE_HOOKS = Hooks(lambda: Path(".claude/settings.json"), ("SessionStart", "PreCompact", "SessionEnd"), timeout=60)

RECIPES = {
    ClientName.VSCODE: Recipe(
        ".vscode/mcp.json",
        ".github/copilot-instructions.md (or AGENTS.md)",
        file=lambda: Path(".vscode/mcp.json"),
        instructions_file=Path(".github/copilot-instructions.md"),
        keys=("servers",),
        by_http={"type": "http"},
        by_stdio={"type": "stdio"},
        placeholder=f"${{input:{QUESTION}}}",
        hooks=Hooks(lambda: Path(".github/hooks/memory.json"), ("SessionStart", "PreCompact", "Stop"), in_groups=False),
        for_user=lambda: {
            "location": str(_vscode_file_of_user()),
            "file": _vscode_file_of_user,
            "instructions": "user instructions (Chat: New Instructions File)",
            "instructions_file": None,
            "hooks": None,
        },
    ),
    ClientName.CLAUDE_CODE: Recipe(
        "type in a terminal, in your project",
        "CLAUDE.md",
        file=lambda: Path(".mcp.json"),
        instructions_file=Path("CLAUDE.md"),
        by_http={"type": "http"},
        by_stdio={"type": "stdio"},
        placeholder=f"${{{VARIABLE}}}",
        shown=_claude_code,
        hooks=_CLAUDE_HOOKS,
        for_user=_claude_code_of_user,
    ),
    # `headers` would be ignored, and a token in the file refused.
    ClientName.CODEX: Recipe(
        "~/.codex/config.toml",
        "AGENTS.md",
        file=_codex_file,
        instructions_file=_AGENTS,
        form=Form.TOML,
        keys=("mcp_servers",),
        headers="http_headers",
        variable_field="bearer_token_env_var",
        hooks=Hooks(lambda: _codex_file().with_name("hooks.json"), ("SessionStart", "PreCompact", "Stop")),
        for_user=lambda: {"instructions_file": _codex_file().with_name("AGENTS.md")},
    ),
    ClientName.CURSOR: Recipe(
        ".cursor/mcp.json (or ~/.cursor/mcp.json)",
        "AGENTS.md",
        file=lambda: Path(".cursor/mcp.json"),
        instructions_file=_AGENTS,
        placeholder=_TO_ENVIRONMENT,
        for_user=lambda: {
            "file": lambda: Path.home() / ".cursor/mcp.json",
            "instructions": "Settings → Rules → User Rules",
            "instructions_file": None,
        },
    ),
    # `url` would be the older transport, Server-Sent Events.
    ClientName.GEMINI: Recipe(
        "~/.gemini/settings.json",
        "GEMINI.md",
        file=lambda: Path.home() / ".gemini/settings.json",
        instructions_file=Path("GEMINI.md"),
        url="httpUrl",
        placeholder=f"${VARIABLE}",
        hooks=Hooks(lambda: Path.home() / ".gemini/settings.json", ("SessionStart", "PreCompress", "SessionEnd")),
        for_user=lambda: {"instructions_file": Path.home() / ".gemini/GEMINI.md"},
    ),
    ClientName.CLAUDE_DESKTOP: Recipe(
        "claude_desktop_config.json (Settings → Developer → Edit Config)",
        "the project's instructions",
        file=_claude_desktop_file,
        only_stdio=True,
    ),
    ClientName.WINDSURF: Recipe(
        "~/.codeium/windsurf/mcp_config.json",
        "AGENTS.md",
        file=lambda: Path.home() / ".codeium/windsurf/mcp_config.json",
        instructions_file=_AGENTS,
        url="serverUrl",
        placeholder=_TO_ENVIRONMENT,
    ),
    ClientName.ZED: Recipe(
        "settings.json (zed: open settings file)", "AGENTS.md", file=_zed_file, instructions_file=_AGENTS, keys=("context_servers",)
    ),
    ClientName.CLINE: Recipe(
        "cline_mcp_settings.json (MCP Servers → Configure)",
        ".clinerules/memory.md",
        instructions_file=Path(".clinerules/memory.md"),
        by_http={"type": "streamableHttp"},
    ),
    ClientName.ROO: Recipe(
        ".roo/mcp.json",
        ".roo/rules/memory.md",
        file=lambda: Path(".roo/mcp.json"),
        instructions_file=Path(".roo/rules/memory.md"),
        by_http={"type": "streamable-http"},
        placeholder=_TO_ENVIRONMENT,
    ),
    ClientName.GOOSE: Recipe(
        "~/.config/goose/config.yaml",
        ".goosehints",
        file=_goose_file,
        instructions_file=Path(".goosehints"),
        form=Form.YAML,
        keys=("extensions",),
        by_http={"type": "streamable_http", "name": "{name}", "enabled": True, "timeout": 300},
        by_stdio={"type": "stdio", "name": "{name}", "enabled": True, "timeout": 300},
        url="uri",
        command="cmd",
        variables="envs",
    ),
    ClientName.LMSTUDIO: Recipe(
        "mcp.json (Program → Install → Edit mcp.json)", _SYSTEM_PROMPT, file=lambda: Path.home() / ".lmstudio/mcp.json"
    ),
    ClientName.LIBRECHAT: Recipe(
        "librechat.yaml",
        "the agent's instructions",
        file=lambda: Path("librechat.yaml"),
        form=Form.YAML,
        by_http={"type": "streamable-http"},
        by_stdio={"type": "stdio"},
        placeholder=f"${{{VARIABLE}}}",
        gateway=_librechat_gateway,
        gateway_location="librechat.yaml, to remember without tools",
    ),
    ClientName.OPEN_WEBUI: Recipe(
        "Admin Settings → External Tools → +",
        "the model's system prompt",
        shown=_open_webui,
        gateway=_open_webui_gateway,
        gateway_location="Settings → Connections → OpenAI API, to remember without tools",
    ),
    ClientName.SILLYTAVERN: Recipe("API Connections", "", shown=_sillytavern),
    ClientName.N8N: Recipe("a node of the workflow", "the agent's system message", shown=_n8n),
    ClientName.CLAUDE_AI: Recipe("Settings → Connectors → Add custom connector", "the project's instructions", shown=_public),
    ClientName.CHATGPT: Recipe(
        "Settings → Apps & Connectors → Advanced → Developer mode → Create", "the project's instructions", shown=_public
    ),
}
