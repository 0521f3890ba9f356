"""Changing config.json for its owner: the text with other values, its unknown keys and its order kept, and what is wrong with a value."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from memory_mcp.config.reading import allowed, parse, put
from memory_mcp.config.settings import Settings, setting_schemas
from memory_mcp.errors import SettingsRefused


def edited(text: str, source: str, values: Mapping[str, Any], reset: Collection[str] = ()) -> str:
    """The text of a config.json with these values, by dotted key; keys in `reset` are taken out.

    Raises:
        ConfigError: the text is not a JSON object.
        SettingsRefused: a key doesn't exist, or a value is not allowed.
    """
    known = setting_schemas()
    problems = {key: "there is no such key" for key in (*values, *reset) if key not in known}
    tree = parse(text, source)
    for key, value in values.items():
        if key not in problems:
            put(tree, tuple(key.split(".")), value)
    for key in reset:
        _remove(tree, key.split("."))
    problems |= _problems(tree, values)
    if problems:
        raise SettingsRefused(problems)
    return json.dumps(tree, ensure_ascii=False, indent=2) + "\n"


def keys_in(text: str, source: str) -> set[str]:
    """The dotted keys of settings that a config.json sets."""
    tree = parse(text, source)
    return {key for key in setting_schemas() if _has(tree, key.split("."))}


def _problems(tree: Mapping[str, Any], values: Collection[str]) -> dict[str, str]:
    """What is wrong with these values. Problems of other values are left out: they existed before this change."""
    try:
        Settings.model_validate(tree)
    except ValidationError as error:
        problems: dict[str, str] = {}
        for problem in error.errors(include_url=False):
            path = ".".join(str(part) for part in problem["loc"])
            key = next((key for key in values if path == key or path.startswith(f"{key}.") or key.startswith(f"{path}.")), None)
            if key:
                problems.setdefault(key, allowed(problem["msg"]))
        return problems
    return {}


def _has(tree: Any, path: list[str]) -> bool:
    for name in path:
        if not isinstance(tree, dict) or name not in tree:
            return False
        tree = tree[name]
    return True


def _remove(tree: dict[str, Any], path: list[str]) -> None:
    """Take a key out, and its group if that is then empty."""
    if not _has(tree, path):
        return
    if len(path) == 1:
        del tree[path[0]]
        return
    _remove(tree[path[0]], path[1:])
    if not tree[path[0]]:
        del tree[path[0]]
