"""Puts a server into the settings file of a client, and its instructions into a Markdown file, and takes both out again.

Everything else in these files stays: a YAML file that would lose its comments is not written. Each state before a change is kept.
"""

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from memory_mcp.cli.client_recipes import Form, dumped, entries_in
from memory_mcp.cli.file_states import FileStates
from memory_mcp.cli.json_edits import edited, without_comments
from memory_mcp.errors import InvalidInput, StoreError
from memory_mcp.store.files.durable_files import write_atomically

Tree = dict[str, Any]
_COMMENT = re.compile(r"(?m)(^|\s)#")


def changed_settings(text: str, form: Form, change: Callable[[Tree], None], where: Path) -> str:
    """The settings file `text` after `change`.

    Raises:
        InvalidInput: it can't be read, or has comments that would be lost.
    """
    if form is Form.TOML:
        import tomlkit  # noqa: PLC0415  1 MB, which `serve` doesn't need

        try:
            document = tomlkit.parse(text)
        except tomlkit.exceptions.TOMLKitError as error:
            raise _mistaken(where, error) from error
        change(document)
        return tomlkit.dumps(document)
    if form is Form.YAML and _COMMENT.search(text):
        raise InvalidInput(
            "{} has comments", "writing it would lose them", "Paste the settings yourself, as printed without --write", where
        )
    plain = text if form is Form.YAML else without_comments(text)
    tree = _parsed(lambda: yaml.safe_load(text) if form is Form.YAML else json.loads(plain), where) if plain.strip() else {}
    if not isinstance(tree, dict):
        raise InvalidInput("{} is not an object", "", "Paste the settings yourself, as printed without --write", where)
    before = json.dumps(tree)
    change(tree)
    if json.dumps(tree) == before:
        return text
    if form is Form.YAML or not plain.strip():
        return (text if form is Form.JSON else "") + dumped(tree, form) + "\n"
    return edited(text, tree)


def is_bare(text: str, form: Form, where: Path) -> bool:
    """Whether a settings file has neither a setting nor a comment."""
    tree: Tree = {}
    changed_settings(text, form, tree.update, where)
    has_comments = without_comments(text) != text if form is Form.JSON else _COMMENT.search(text) is not None
    return not has_comments and all(value in ({}, []) for value in tree.values())


def put(tree: Tree, addition: Mapping[str, Any]) -> None:
    """Merge the addition in place: objects by key, lists by the `id` of their items, anything else is replaced.

    Raises:
        InvalidInput: a table of the file is something else.
    """
    for key, value in addition.items():
        present = tree.get(key)
        if present is None:
            tree[key] = value
        elif isinstance(value, list) and isinstance(present, list):
            known = [item.get("id") for item in present if isinstance(item, dict)]
            present.extend(item for item in value if item.get("id") not in known)
        elif isinstance(value, list) or not isinstance(present, dict):
            raise InvalidInput("{} in the file is no {}", "", "Mend the file first", key, "list" if isinstance(value, list) else "object")
        else:
            present.update(value)


def take_out(tree: Tree, keys: tuple[str, ...], name: str, question: str, before: Any = None, kept: Collection[str] | None = None) -> None:
    """Remove the server in place, and the question for its token if no other server needs it. `before` takes its place. What is empty then
    goes, too, unless `kept` names it, or is None."""
    table = entries_in(tree, keys)
    if not isinstance(table, MutableMapping) or name not in table:
        return
    del table[name]
    if before is not None:
        table[name] = before
    if isinstance(tree.get("inputs"), list) and f"${{input:{question}}}" not in json.dumps(table):
        tree["inputs"] = [item for item in tree["inputs"] if not (isinstance(item, dict) and item.get("id") == question)]
    for key in (keys[0], "inputs"):
        if kept is not None and key not in kept and tree.get(key) in ({}, []):
            del tree[key]


def tree_of(path: Path, form: Form) -> Tree:
    """What a settings file holds; empty if there is none.

    Raises:
        InvalidInput: as `changed_settings`.
    """
    tree: Tree = {}
    if path.exists():
        changed_settings(path.read_text(encoding="utf-8-sig", errors="replace"), form, tree.update, path)
    return tree


def replace_hooks(tree: Tree, is_ours: Callable[[str], bool], addition: Mapping[str, Any]) -> None:
    """Take out the hooks whose command `is_ours`, in place, and put those of the addition behind the others.

    Raises:
        InvalidInput: the hooks of the file have another form.
    """
    hooks = tree.setdefault("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise InvalidInput("the hooks in the file have another form", "", "Paste the hooks yourself, as printed without --write")
    for groups in hooks.values():
        groups[:] = [group for group in groups if not any(is_ours(command) for command in commands_of(group))]
    for event, groups in addition.get("hooks", {}).items():
        hooks.setdefault(event, []).extend(groups)
    tree["hooks"] = {event: groups for event, groups in hooks.items() if groups}
    if not tree["hooks"]:
        del tree["hooks"]


def commands_of(group: object) -> list[str]:
    """The commands of a hook, or of a group of hooks."""
    if not isinstance(group, dict):
        return []
    inner = group.get("hooks")
    hooks = [group, *(inner if isinstance(inner, list) else [])]
    return [str(hook.get("command")) for hook in hooks if isinstance(hook, dict)]


def with_block(text: str, name: str, block: str | None) -> str:
    """A Markdown text with the instructions of a server, between two comments that name it, after a blank line. None takes them out: then the
    text is as it was before. Where it has no last line feed, the instructions have none either."""
    begin, end = f"<!-- {name}: instructions of memory-mcp -->", f"<!-- end of {name} -->"
    present = re.compile(f"(?P<gap>\n?\n?){re.escape(begin)}.*?{re.escape(end)}(?P<last>\n?)", re.DOTALL)
    match = present.search(text)
    if block is not None:
        written = f"{begin}\n{block.rstrip()}\n{end}"
        if match:
            return f"{text[: match.start()]}{match['gap']}{written}{match['last']}{text[match.end() :]}"
        return f"{text}\n{written}\n" if text.endswith("\n") else f"{text}\n\n{written}" if text else f"{written}\n"
    if not match:
        return text
    # The first line feed of the two ends the line before, unless that had none.
    return text[: match.start()] + ("\n" if match["last"] and match["gap"] == "\n\n" else "") + text[match.end() :]


@dataclass(frozen=True, slots=True)
class FileChange:
    """How a file of a client is changed: `change` makes the new text, `without` takes out what is ours, and `is_bare` says whether a text
    without it can go."""

    change: Callable[[str], str]
    without: Callable[[str], str]
    is_bare: Callable[[str], bool] = lambda text: not text.strip()


def replaced(path: Path, change: FileChange) -> tuple[str, Path | None]:
    """Change a text file, after its state is kept. Returns the lines that changed, and where that state is kept if no equal one was.

    A link is followed, and the file keeps its permissions. One that was made here goes when nothing is left in it, with the directories that
    were made for it.

    Raises:
        InvalidInput: `change` refuses, or the file is not UTF-8.
        StoreError: it can't be read or written.
    """
    path = path.resolve()
    try:
        return _replaced(path, FileStates(path), change)
    except UnicodeDecodeError as error:
        raise InvalidInput("{} is not UTF-8", "{}", "Convert it first", path, error) from error
    except OSError as error:
        raise StoreError("{} can't be changed", "{}", "Mend its permissions, or paste the settings yourself", path, error) from error


def _replaced(path: Path, states: FileStates, change: FileChange) -> tuple[str, Path | None]:
    present = path.exists()
    before = path.read_bytes() if present else b""
    read = before.decode("utf-8")
    mark = "\ufeff" if read.startswith("\ufeff") else ""
    text = read.removeprefix(mark).replace("\r\n", "\n")
    has_returns = "\r\n" in read
    if "\n" in read.replace("\r\n", ""):  # line ends of both kinds stay
        text, has_returns = read.removeprefix(mark), False
    new = change.change(text)
    states.take_earlier()
    if new == text:
        return "", None
    if not present or states.is_made_here is None:
        _note(path, states, change, has_ours=change.without(text) != text)
    kept = states.keep(before) if present else None
    if change.without(new) == new:
        if states.is_made_here and change.is_bare(new):
            states.remove()
            return _difference(text, ""), kept
        new = _as_before(new, states, change)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()  # a new file has the permissions that the user's new files have
    permissions = path.stat().st_mode
    write_atomically(path, (mark + (new.replace("\n", "\r\n") if has_returns else new)).encode())
    path.chmod(permissions)
    return _difference(text, new), kept


def _note(path: Path, states: FileStates, change: FileChange, *, has_ours: bool) -> None:
    """Note whether the file is made here. One with ours that nothing is noted of is from an earlier version, which kept what was there before."""
    is_earlier = has_ours and _state_without_ours(states, change) is None
    missing = [parent for parent in path.parents if not parent.exists()]
    below = [parent for parent in path.parents if is_earlier and Path.cwd().resolve() in parent.parents]
    states.note(made=is_earlier or not path.exists(), directories=[*missing, *below])


def _as_before(new: str, states: FileStates, change: FileChange) -> str:
    """A text without ours as it was written before ours came, if nothing but the last blank lines and empty tables differs."""
    state = _state_without_ours(states, change)
    is_same = state is not None and (state.rstrip() == new.rstrip() or (change.is_bare(state) and change.is_bare(new)))
    return state if state is not None and is_same else new


def _state_without_ours(states: FileStates, change: FileChange) -> str | None:
    texts = (state.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n") for state in states.newest_first())
    return next((text for text in texts if change.without(text) == text), None)


def before_ours(path: Path, form: Form, keys: tuple[str, ...], name: str, is_ours: Callable[[Any], bool]) -> tuple[Any, Collection[str]]:
    """What had this name in the settings file before ours took its place, None if nothing had; and what else was in the file."""
    for state in FileStates(path.resolve()).newest_first():
        tree: Tree = {}
        changed_settings(state.decode("utf-8-sig"), form, tree.update, path)
        entry = entries_in(tree, keys).get(name)
        if entry is None or not is_ours(entry):
            return entry, list(tree)
    return None, ()


def _difference(old: str, new: str) -> str:
    """The changed lines alone: those around them may hold the secrets of other servers."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _parsed(parse: Callable[[], Any], where: Path) -> Any:
    try:
        return parse()
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise _mistaken(where, error) from error


def _mistaken(where: Path, error: Exception) -> InvalidInput:
    return InvalidInput(
        "{} can't be changed by a program", "it has mistakes: {}", "Paste the settings yourself, as printed without --write", where, error
    )
