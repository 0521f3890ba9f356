"""config.json over HTTP: every setting with what it means and where its value comes from, and changing those that concern memories.

The file is the whole server's: only a caller for all personas may see and change it.
"""

import hashlib
import stat
import threading
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

from memory_mcp.config import editing
from memory_mcp.config.live import LiveConfig
from memory_mcp.config.reading import load, variables_in_force
from memory_mcp.config.settings import NEEDS_RESTART, ONLY_IN_THE_FILE, SECRET_KEYS, Settings, setting_schemas, value_of
from memory_mcp.errors import ConfigError, InvalidInput, NotAllowed
from memory_mcp.server.arguments import Arguments, NoArguments, Object, Text, TextList, http
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.views import omit_empty
from memory_mcp.store.files.durable_files import PRIVATE_FILE, refusal, write_atomically

HIDDEN = "…"
ANY = WithJsonSchema({"description": "As the key's schema says."})

_writing = threading.Lock()


class Setting(TypedDict):
    """One key: `value` in force, `schema` (JSON schema with default and description), `set_by` the file, a variable or an option."""

    key: str
    value: Annotated[Any, ANY]
    schema: dict[str, Any]
    restart: bool
    editable: bool
    set_by: NotRequired[str]


class Configuration(TypedDict):
    """`revision` changes with the file: send it along to change nothing that somebody else has changed meanwhile."""

    file: str
    revision: str
    settings: list[Setting]
    restart_pending: list[str]
    warnings: list[str]
    error: NotRequired[str]


@operation(needs=["admin"], route=Route("GET", "/api/config", of_persona=False), answer=Configuration)
def show(call: Call, _arguments: NoArguments) -> Json:
    """Return every setting with its value, its schema, its description, and where the value comes from."""
    _require_everyone(call)
    return _view(call.runtime.config)


class ConfigChange(Arguments):
    values: Annotated[Object, http('New values by dotted key: {"fusion.date_boost": 0.4}.')] = {}
    reset: Annotated[TextList, http("Keys that get their default again: they are taken out of the file.")] = []
    revision: Annotated[Text, http("`revision` of the answer that the change is based on; without it any.")] = ""


@operation(needs=["admin"], route=Route("PATCH", "/api/config", of_persona=False), answer=Configuration)
def change(call: Call, arguments: ConfigChange) -> Json:
    """Change settings in config.json, which the server follows at once, except those that need a restart. All of them, or none."""
    _require_everyone(call)
    config, keys = call.runtime.config, [*arguments.values, *arguments.reset]
    if not keys:
        raise InvalidInput("nothing is to be changed", "", "Send values, or keys to reset")
    if local := [key for key in keys if key in ONLY_IN_THE_FILE]:
        raise NotAllowed(
            "{} can't be changed over HTTP",
            "it runs code, names files, or decides who reaches the server",
            "Edit config.json on the server's machine",
            ", ".join(local),
        )
    pinned = _pinned(config)
    if fixed := [key for key in keys if key in pinned]:
        raise InvalidInput("{} is set by {}", "that goes before config.json", "Change it there, and restart", fixed[0], pinned[fixed[0]])
    with _writing:
        text = _text(config)
        if arguments.revision and arguments.revision != _revision(text):
            raise InvalidInput("config.json was changed meanwhile", "by somebody else", "Look at it again, and repeat your change")
        changed = editing.edited(text, config.path.name, arguments.values, arguments.reset)
        load(changed, config.path.name)
        _write(config.path.resolve(), changed)
        config.refresh()
    call.note_event("configure", settings=keys)
    return _view(config)


def _require_everyone(call: Call) -> None:
    if call.admission.personas is not None:
        call.admission.note("scope", asked="the configuration")
        raise NotAllowed("the configuration is the whole server's", "this token is for some personas", "Use a token for all personas")


def _view(config: LiveConfig) -> Json:
    text = _text(config)  # first: the revision is never that of a later edit than the values
    settings = config.current()
    try:
        in_file = editing.keys_in(text, config.path.name)
    except ConfigError:  # the answer has it as `error`
        in_file = set()
    set_by = {**dict.fromkeys(in_file, "file"), **_pinned(config)}
    return {
        "file": str(config.path.absolute()),
        "revision": _revision(text),
        "settings": [_setting(settings, key, set_by) for key in setting_schemas()],
        "restart_pending": list(config.restart_pending),
        "warnings": list(config.warnings),
        **omit_empty(error=config.error),
    }


def _setting(settings: Settings, key: str, set_by: dict[str, str]) -> Json:
    value = value_of(settings, key)
    return {
        "key": key,
        "value": dict.fromkeys(value, HIDDEN) if key in SECRET_KEYS else value,
        "schema": dict(setting_schemas()[key]),
        "restart": key.partition(".")[0] in NEEDS_RESTART,
        "editable": key not in ONLY_IN_THE_FILE and set_by.get(key, "file") == "file",
        **omit_empty(set_by=set_by.get(key)),
    }


def _pinned(config: LiveConfig) -> dict[str, str]:
    """The settings that something sets before the file: its variable or option, by dotted key."""
    return {**variables_in_force(), **config.command_line}


def _text(config: LiveConfig) -> str:
    try:
        return config.path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return "{}"
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("{} can't be read", "it is no readable text", "Repair it on the server's machine", config.path.name) from error


def _revision(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(path: Path, text: str) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE_FILE
        write_atomically(path, text)
        path.chmod(mode)
    except OSError as error:
        raise refusal(
            error, f"{path.name} can't be written", "Make its directory writable for the server, or edit the file by hand"
        ) from error
