"""Reads config.json and the environment into `Settings`. Only this module reads the environment."""

import difflib
import getpass
import json
import locale
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import BaseModel, ValidationError

from memory_mcp.config.group import Group
from memory_mcp.config.settings import SECRET_KEYS, Settings, documented_keys
from memory_mcp.errors import ConfigError
from memory_mcp.wording import clauses, sentence

ENVIRONMENT_PREFIX = "MEMORY_MCP_"
# What Debian calls the home of users that have none.
NO_HOME = "/nonexistent"
# Variables that are not settings: paths, addresses, secrets, and the persona of a command.
_LOCATIONS = ("CONFIG", "DATA", "URL", "TOKEN", "KEY", "PERSONA", "EMBEDDINGS_KEY", "RERANKER_KEY")

# What a server leaves in each data directory that it has served.
_MARKS = (".server.lock", ".server.json", "memory_operations.log")
_PERSONA_FILES = ("persona.json", "memory.sqlite")

# How pydantic names the kinds of a value that may be of several.
_KIND = re.compile(r"\A(list|dict|literal)\[.*\]")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, with warnings about unknown keys and unused variables."""

    settings: Settings
    warnings: tuple[str, ...] = ()


def default_config_path() -> Path:
    """The default path of config.json: `MEMORY_MCP_CONFIG`, or else next to the default data directory."""
    given = os.environ.get(f"{ENVIRONMENT_PREFIX}CONFIG")
    return Path(given) if given else (user_data_directory().parent if _is_elsewhere() else Path()) / "config.json"


def default_data_directory() -> Path:
    """The default data directory: `MEMORY_MCP_DATA`, or else `memory` in the working directory, or else that of `memory-mcp stdio`."""
    given = os.environ.get(f"{ENVIRONMENT_PREFIX}DATA")
    return Path(given) if given else user_data_directory() if _is_elsewhere() else Path("memory")


def variable(name: str) -> str | None:
    """A variable that isn't ours, such as the key of a vendor of chat models; None if it is unset or blank."""
    return os.environ.get(name, "").strip() or None


def _is_elsewhere() -> bool:
    """Whether the working directory has nothing of this program, and the user's directory for data has."""
    return not _is_there(Path("memory")) and not _is_there(Path("config.json")) and _is_there(user_data_directory())


def _is_there(path: Path, kind: Callable[[Path], bool] = Path.exists) -> bool:
    """True if something, or something of this kind, is at a path as far as this user may know: the home of a container's user may be another's."""
    try:
        return kind(path)
    except OSError:
        return False


def have_home() -> None:
    """Give a process without a home one that doesn't exist, and without a name its number: libraries that ask for them fail otherwise.

    A container's user has neither HOME nor an entry among the users of the system. What would lie in the home, such as a data directory that
    nobody named, is then refused with its path.
    """
    if os.name == "nt":
        return
    try:
        has_home = Path.home().is_absolute()
    except RuntimeError:
        has_home = False
    if not has_home:
        os.environ["HOME"] = NO_HOME
    try:
        getpass.getuser()
    except (KeyError, OSError):  # an OSError from Python 3.13 on
        os.environ["USER"] = str(os.getuid())


def named_data_directory() -> Path | None:
    """The data directory that somebody names: `MEMORY_MCP_DATA`, or else `memory` in the working directory, if config.json is next to it
    or a server's data are in it."""
    given, here = os.environ.get(f"{ENVIRONMENT_PREFIX}DATA"), Path("memory")
    if given:
        return Path(given)
    is_directory = _is_there(here, Path.is_dir)
    return here if is_directory and (_is_there(Path("config.json"), Path.is_file) or _is_of_a_server(here)) else None


def _is_of_a_server(directory: Path) -> bool:
    """Whether a server has served a directory, or there are personas in it."""
    if any(os.path.exists(directory / mark) for mark in _MARKS):  # noqa: PTH110  which doesn't raise where it may not look
        return True
    return any(next(directory.glob(f"*/{name}"), None) for name in _PERSONA_FILES)


def personal_data_directory() -> Path:
    """The data directory that somebody names, or else that in the user's directory for data."""
    return named_data_directory() or user_data_directory()


def user_data_directory() -> Path:
    """The data directory in the user's directory for data."""
    return platformdirs.user_data_path("memory-mcp", appauthor=False) / "memory"


def config_beside(data_directory: Path) -> Path:
    """The config.json of a data directory: `MEMORY_MCP_CONFIG`, or else next to it."""
    given = os.environ.get(f"{ENVIRONMENT_PREFIX}CONFIG")
    return Path(given) if given else data_directory.parent / "config.json"


def default_persona() -> str | None:
    """The default persona of client commands: `MEMORY_MCP_PERSONA`. One that is set to nothing was not filled in: nobody has an empty name."""
    return os.environ.get(f"{ENVIRONMENT_PREFIX}PERSONA")


def default_server_url() -> str | None:
    """The default server of client commands: `MEMORY_MCP_URL`."""
    return os.environ.get(f"{ENVIRONMENT_PREFIX}URL") or None


def default_token() -> str | None:
    """The default token of client commands: `MEMORY_MCP_TOKEN`."""
    return os.environ.get(f"{ENVIRONMENT_PREFIX}TOKEN") or None


def language_of_machine() -> Literal["ja", "en"]:
    """The language for people at this machine: `MEMORY_MCP_LANGUAGE`, or else that of the system."""
    set_here = os.environ.get(f"{ENVIRONMENT_PREFIX}LANGUAGE", "")
    names = [set_here if set_here in {"ja", "en"} else "", *(os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))]
    name = next((name for name in names if name), None) or locale.getlocale()[0] or ""  # Windows has no such variables
    return "ja" if name.lower().startswith("ja") else "en"


def key_in_environment() -> str | None:
    """The master key of encryption in the environment, if it is set: `MEMORY_MCP_KEY`."""
    return os.environ.get(f"{ENVIRONMENT_PREFIX}KEY") or None


def service_key(service: Literal["embeddings", "reranker"]) -> str | None:
    """The key of the server that `embeddings_url` or `reranker_url` names: `MEMORY_MCP_EMBEDDINGS_KEY`, `MEMORY_MCP_RERANKER_KEY`."""
    return os.environ.get(f"{ENVIRONMENT_PREFIX}{service.upper()}_KEY", "").strip() or None


def variables_in_force() -> dict[str, str]:
    """The settings that the environment has set for this process: the variable of each, by dotted key."""
    return {".".join(path): _variable(path) for path in _keys() if _variable(path) in os.environ}


def spans_wanted() -> bool:
    """Whether the variables of OpenTelemetry name a collector. The library reads them itself."""
    if (
        os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
        or os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() != "otlp"
    ):
        return False
    return any(
        os.environ.get(name) for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")
    )


def load(text: str, source: str, environment: Mapping[str, str] | None = None) -> Loaded:
    """Settings from the text of a config.json and the environment.

    Raises:
        ConfigError: the text is not a JSON object, or a value is not allowed. The error names the key, the value and what is allowed.
    """
    tree = parse(text, source)
    warnings = [sentence("{}: {}", source, _unknown_key_warning(path, tree)) for path in _unknown_keys(tree, Settings)]
    overrides, unused = _overrides(os.environ if environment is None else environment)
    for path, value in overrides.items():
        put(tree, path, value)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise _not_allowed(error, source, overrides) from error
    return Loaded(settings, (*warnings, *unused))


def parse(text: str, source: str) -> dict[str, Any]:
    """The JSON object in a text; an empty one if that is empty.

    Raises:
        ConfigError: it is none.
    """
    try:
        json_text = text.removeprefix("\ufeff")
        tree = json.loads(json_text if json_text.strip() else "{}")
        json.dumps(tree, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ConfigError(
            "{} is not valid JSON", "{} in line {}, column {}", "Correct it and save", source, error.msg, error.lineno, error.colno
        ) from error
    except UnicodeEncodeError as error:  # answers that quote the value, such as that of /ready, could not be encoded
        raise ConfigError(
            "{} can't be read", "it contains an unpaired surrogate, such as \\ud83d alone", "Write complete characters", source
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "{} can't be read", "it contains a number with thousands of digits, or lists nested too deeply", "Correct it and save", source
        ) from error
    if not isinstance(tree, dict):
        raise ConfigError(
            "{} contains a {}", "it must be one JSON object", 'Write { "server_port": 8000 }, for example', source, type(tree).__name__
        )
    return tree


def _not_allowed(error: ValidationError, source: str, overrides: Mapping[tuple[str, ...], Any]) -> ConfigError:
    """Lists each wrong value with its key, or the variable that it came from, and what is allowed."""
    allowed_by_value: dict[tuple[bool, str], list[str]] = {}
    for problem in error.errors(include_url=False):
        variable = next((_variable(path) for path in overrides if path == problem["loc"][: len(path)]), None)
        # For a value of several possible kinds, pydantic reports a problem for each, and names the kind in the location.
        key = variable or ".".join(part for each in problem["loc"] if not _KIND.fullmatch(part := str(each)))
        # The error is logged, and the dashboard shows it.
        is_secret = any(f"{key}.".startswith(f"{secret}.") for secret in SECRET_KEYS)
        value = key if is_secret else f"{key} = {json.dumps(problem['input'], ensure_ascii=False, default=str)}"
        allowed_by_value.setdefault((variable is not None, value), []).append(allowed(problem["msg"]))
    wrong_values = [(of_variable, f"{value} ({' or '.join(_once(kinds))})") for (of_variable, value), kinds in allowed_by_value.items()]
    in_variables = [text for of_variable, text in wrong_values if of_variable]
    in_file = [text for of_variable, text in wrong_values if not of_variable]
    if not in_file:
        return ConfigError(
            "an environment variable has a value that is not allowed", "{}", "Correct it and start again", "; ".join(in_variables)
        )
    return ConfigError("{} has a value that is not allowed", "{}", "Correct it and save", source, "; ".join(in_file + in_variables))


def allowed(message: str) -> str:
    """What a value may be, in other words than pydantic's: `should be an object`."""
    words = message.removeprefix("Value error, ").removeprefix("Input ")
    return "should be an object" if words.startswith("should be a valid dictionary") else words


def _once(kinds: list[str]) -> list[str]:
    """The first begins with `should be`, the others go on."""
    return [kinds[0], *(kind.removeprefix("should be ") for kind in kinds[1:])]


def _variable(path: tuple[str, ...]) -> str:
    return ENVIRONMENT_PREFIX + "_".join(path).upper()


def _keys(group: type[BaseModel] = Settings) -> Iterator[tuple[str, ...]]:
    return (tuple(key.split(".")) for key, _, _ in documented_keys(group))


def _unknown_keys(tree: Mapping[str, Any], group: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in tree.items():
        spec = group.model_fields.get(name)
        if spec is None:
            yield (*above, name)
        elif isinstance(value, dict) and isinstance(spec.annotation, type) and issubclass(spec.annotation, Group):
            yield from _unknown_keys(value, spec.annotation, (*above, name))


def _unknown_key_warning(path: tuple[str, ...], tree: Mapping[str, Any]) -> str:
    keys = [".".join(key) for key in _keys()]
    known = [*keys, *dict.fromkeys(key.partition(".")[0] for key in keys if "." in key)]
    if len(path) == 1 and path[0] in keys:  # the dot of the documentation
        grouped: Any = tree[path[0]]
        for name in reversed(path[0].split(".")):
            grouped = {name: grouped}
        return clauses(
            [sentence("unknown key {} is ignored", repr(path[0])), sentence("write it as {}", json.dumps(grouped, ensure_ascii=False))]
        )
    near = difflib.get_close_matches(".".join(path), known, n=1, cutoff=0.5)
    ignored = sentence("unknown key {} is ignored", repr(".".join(path)))
    return clauses([ignored, *(sentence("did you mean {}?", repr(name)) for name in near)])


def _overrides(environment: Mapping[str, str]) -> tuple[dict[tuple[str, ...], Any], list[str]]:
    """Settings from variables (MEMORY_MCP_SERVER_PORT, MEMORY_MCP_VECTOR_REBUILD_MODE), and a warning for each other MEMORY_MCP_ variable."""
    names = {_variable(path): path for path in _keys()}
    overrides: dict[tuple[str, ...], Any] = {}
    unused: list[str] = []
    for name, value in environment.items():
        if name in names:
            overrides[names[name]] = _value(value)
        elif name.startswith(ENVIRONMENT_PREFIX) and name.removeprefix(ENVIRONMENT_PREFIX) not in _LOCATIONS:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            unknown = sentence("environment variable {} is not a setting", name)
            unused.append(clauses([unknown, *(sentence("did you mean {}?", variable) for variable in near)]))
    return overrides, unused


def _value(text: str) -> Any:
    """Parses a variable as JSON (8000, true, null, ["a"]), or returns it as a string if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a value in a tree, in place; groups on the way are copied."""
    for name in path[:-1]:
        inner = tree.get(name)
        tree[name] = tree = dict(inner) if isinstance(inner, dict) else {}
    tree[path[-1]] = value
