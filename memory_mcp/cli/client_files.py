"""Puts a server into the settings file of a client, and its instructions into a Markdown file, and takes both out again.

Everything else in these files stays: a YAML file that would lose its comments is not written.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tomlkit
import yaml
from tomlkit.exceptions import TOMLKitError

from memory_mcp.cli.client_recipes import Form, dumped
from memory_mcp.cli.json_edits import edited, without_comments
from memory_mcp.errors import InvalidInput, StoreError
from memory_mcp.store.files.durable_files import write_atomically

Tree = dict[str, Any]
# The ending of the copy of a file as it was before the last change. People give their own copies other names.
_KEPT_ENDING = ".memory-mcp.bak"
_COMMENT = re.compile(r"(?m)(^|\s)#")


def changed_settings(text: str, form: Form, change: Callable[[Tree], None], where: Path) -> str:
    """The settings file `text` after `change`; empty if nothing is left in it.

    Raises:
        InvalidInput: it can't be read, or has comments that would be lost.
    """
    if form is Form.TOML:
        document = _parsed(lambda: tomlkit.parse(text), where)
        change(document)
        return "" if _holds_nothing(document) and not _COMMENT.search(text) else tomlkit.dumps(document)
    if form is Form.YAML and _COMMENT.search(text):
        raise InvalidInput(f"{where} has comments", "writing it would lose them", "Paste the settings yourself, as printed without --write")
    plain = text if form is Form.YAML else without_comments(text)
    tree = _parsed(lambda: yaml.safe_load(text) if form is Form.YAML else json.loads(plain), where) if plain.strip() else {}
    if not isinstance(tree, dict):
        raise InvalidInput(f"{where} is not an object", "", "Paste the settings yourself, as printed without --write")
    before = json.dumps(tree)
    change(tree)
    if json.dumps(tree) == before:
        return text
    if _holds_nothing(tree) and plain == text:
        return ""
    if form is Form.YAML or not plain.strip():
        return (text if form is Form.JSON else "") + dumped(tree, form) + "\n"
    return edited(text, tree)


def _holds_nothing(tree: Mapping[str, Any]) -> bool:
    return all(value in ({}, []) for value in tree.values())


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
            raise InvalidInput(f"{key} in the file is no {'list' if isinstance(value, list) else 'object'}", "", "Mend the file first")
        else:
            present.update(value)


def take_out(tree: Tree, keys: tuple[str, ...], name: str, question: str) -> None:
    """Remove the server in place, and the question for its token if no other server needs it."""
    table = tree
    for key in keys:
        table = table.get(key, {})
        if not isinstance(table, dict):
            return
    table.pop(name, None)
    if isinstance(tree.get("inputs"), list) and f"${{input:{question}}}" not in json.dumps(table):
        tree["inputs"] = [item for item in tree["inputs"] if not (isinstance(item, dict) and item.get("id") == question)]


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


def replaced(
    path: Path, change: Callable[[str], str], *, without: Callable[[str], str] | None = None, can_be_written_again: bool = False
) -> tuple[str, Path | None]:
    """Change a text file. Returns the lines that changed, and where the file is kept as it was before anything of ours was in it.

    `without` takes out what is ours; none for a change that does so itself. None is kept of a new file, and of one from which something is
    taken out that `can_be_written_again`; the one that is kept goes when the file is equal to it again.

    A link is followed, and the file keeps its permissions. One in which nothing is left is removed.

    Raises:
        InvalidInput: `change` refuses, or the file is not UTF-8.
        StoreError: it can't be read or written.
    """
    path = path.resolve()
    try:
        present = path.exists()
        before = path.read_bytes() if present else b""
        read = before.decode("utf-8")
        mark = "\ufeff" if read.startswith("\ufeff") else ""
        text = read.removeprefix(mark).replace("\r\n", "\n")
        has_returns = "\r\n" in read
        if "\n" in read.replace("\r\n", ""):  # line ends of both kinds stay
            text, has_returns = read.removeprefix(mark), False
        new = change(text)
        if new == text:
            return "", None
        kept = path.with_name(f"{path.name}{_KEPT_ENDING}")
        after = (mark + (new.replace("\n", "\r\n") if has_returns else new)).encode()
        if can_be_written_again and kept.exists() and kept.read_bytes() == after:
            kept.unlink()
        had_ours = without is not None and without(text) != text
        keeps = present and not can_be_written_again and not (had_ours and kept.exists())
        if keeps:
            kept.write_bytes(before)
            kept.chmod(path.stat().st_mode)
        if not new.strip():
            path.unlink()
            return _difference(text, ""), kept if keeps else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()  # a new file has the permissions that the user's new files have
        permissions = path.stat().st_mode
        write_atomically(path, after)
        path.chmod(permissions)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8", str(error), "Convert it first") from error
    except OSError as error:
        raise StoreError(f"{path} can't be changed", str(error), "Mend its permissions, or paste the settings yourself") from error
    return _difference(text, new), kept if keeps else None


def _difference(old: str, new: str) -> str:
    """The changed lines alone: those around them may hold the secrets of other servers."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _parsed(parse: Callable[[], Any], where: Path) -> Any:
    try:
        return parse()
    except (json.JSONDecodeError, TOMLKitError, yaml.YAMLError) as error:
        raise InvalidInput(
            f"{where} can't be changed by a program",
            f"it has mistakes: {error}",
            "Paste the settings yourself, as printed without --write",
        ) from error
