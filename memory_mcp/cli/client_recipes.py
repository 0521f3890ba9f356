"""How each client wants an MCP server written into its settings: where, under which key, in which words."""

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from string import Template
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
    def public_url(self) -> str:
        """The same for clients that call from the internet."""
        url = self.persona_url
        return url if self.base_url.startswith("https://") else url.replace(self.base_url, "https://YOUR-SERVER")

    @property
    def gateway_url(self) -> str:
        """The address for clients of OpenAI's API that can't send headers."""
        return f"{self.persona_url.removesuffix('/mcp')}/v1"

    @property
    def key(self) -> str:
        """What is put where a client wants a key alone."""
        return PASTE if self.with_token else "none"

    @property
    def title(self) -> str:
        """The name of the server as a heading."""
        return self.name.capitalize()

    @property
    def quoted_persona(self) -> str:
        """The persona as a header has it."""
        return quote(self.persona, safe="")

    def headers(self, token: str | None = PASTE) -> dict[str, str]:
        """The HTTP headers, percent-encoded: Node's `Headers`, which most clients use, rejects raw Japanese. `token` is the client's
        placeholder for the token; None: the client is given it otherwise."""
        persona = {"X-Persona": self.quoted_persona}
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

    file: Path
    events: Sequence[str]
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
    `shown` is printed instead of the file's content, and with `scope` a command of Claude Code. `gateway`, behind `gateway_tree` if there is one, is how a
    client of OpenAI's API is given a memory without tools, at `gateway_location`; one that has no other way has no `instructions`.
    """

    location: str
    instructions: str
    file: Path | None = None
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
    auth: tuple[str, str] = ("", "")
    shown: str = ""
    scope: str = ""
    gateway: str = ""
    gateway_tree: Mapping[str, Any] = field(default_factory=dict)
    gateway_location: str = ""
    hooks: Hooks | None = None

    def entry(self, target: Target) -> dict[str, Any]:
        """The server in the table of servers."""
        if target.by_stdio or self.only_stdio:
            program, *arguments = target.command()
            variables = {self.variables: {VARIABLE: PASTE}} if target.with_token else {}
            return {**self._filled(self.by_stdio, target), self.command: program, "args": arguments, **variables}
        secret = {self.variable_field: VARIABLE} if self.variable_field and target.with_token else {}
        headers = target.headers(None if self.variable_field else self.placeholder)
        return {**self._filled(self.by_http, target), self.url: target.url, self.headers: headers, **secret}

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
        if self.scope:
            return _claude_command(target, self.scope)
        return self._filled(self.shown.lstrip("\n"), target) if self.shown else dumped(self.tree(target), self.form)

    def gateway_text(self, target: Target) -> str:
        """What is printed for the client's way to a memory without tools."""
        tree = [dumped(self._filled(self.gateway_tree, target), self.form)] if self.gateway_tree else []
        return "\n".join([*tree, self._filled(self.gateway.lstrip("\n"), target)])

    def _filled(self, value: Any, target: Target) -> Any:
        """A text, or all those in a tree, with what the names after $ mean for a target."""
        if isinstance(value, str):
            text, auth = Template(value), self.auth[not target.with_token]
            return text.substitute({name: auth if name == "auth" else getattr(target, name) for name in text.get_identifiers()})
        if isinstance(value, Mapping):
            return {key: self._filled(part, target) for key, part in value.items()}
        return [self._filled(part, target) for part in value] if isinstance(value, list) else value


def recipe_of(client: ClientName, *, of_user: bool = False) -> Recipe | None:
    """The settings of a client for a project, or for all projects `of_user`; None where those are not known."""
    table = _TABLES[client]
    if of_user and "for_user" not in table:
        return None
    fields = {**table, **(table["for_user"] if of_user else {})}
    fields.pop("for_user", None)
    fields["form"] = Form(fields.get("form", Form.JSON))
    fields |= {name: _place(fields[name]) for name in ("file", "instructions_file") if name in fields}
    fields |= {name: str(_place(fields[name])) for name in ("location", "instructions") if fields[name].startswith("$")}
    if "keys" in fields:
        fields["keys"] = tuple(fields["keys"])
    if hooks := fields.pop("hooks", None):
        fields["hooks"] = Hooks(**{**hooks, "file": _place(hooks["file"])})
    return Recipe(**fields)


def _place(path: str | Mapping[str, str]) -> Path | None:
    """A path of the table; None for an empty one."""
    text = Template(path if isinstance(path, str) else path.get(sys.platform, path["linux"]))
    return Path(text.substitute({name: _PLACES[name]() for name in text.get_identifiers()})) if text.template else None


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


def _claude_command(target: Target, scope: str) -> str:
    """With a token, an entry in the project's `.mcp.json` that names the variable, since other users can read arguments."""
    option = f"--scope {scope} " if scope != "project" or (target.with_token and not target.by_stdio) else ""
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


def _app_data() -> Path:
    """Where programs of Windows keep their settings."""
    return Path(os.environ.get("APPDATA", Path.home() / "AppData/Roaming"))


def _config() -> Path:
    """Where programs of this system keep their settings."""
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support"
    return _app_data() if sys.platform == "win32" else Path.home() / ".config"


_TABLES: Mapping[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("recipes.toml").read_text(encoding="utf-8"))
_PLACES: Mapping[str, Callable[[], object]] = {
    "HOME": Path.home,
    "APPDATA": _app_data,
    "CONFIG": _config,
    "CODEX": lambda: os.environ.get("CODEX_HOME") or Path.home() / ".codex",
    "CLAUDE": lambda: os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude",
    "CLAUDE_HOME": lambda: os.environ.get("CLAUDE_CONFIG_DIR") or Path.home(),
}
