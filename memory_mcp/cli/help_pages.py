"""Pages of help in Japanese: typer's are for a language with spaces between its words, and cut off what has none."""

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import typer

from memory_mcp.wording import catalog

# What a line break leaves whole: a word in Latin letters or katakana, or any other character, with the punctuation that belongs to it.
_UNBROKEN = re.compile(
    r"\s{0,200}+[（「『【]{0,20}(?:[ァ-ヺー]++|[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]++)[、。，．・：；？！）」』】…ぁぃぅぇぉっゃゅょ々ー]*+\s*+"
)
WIDTH_LIMIT, NAMES_WIDTH = 120, 28


def named(command: Any, arguments: Sequence[str]) -> tuple[Any, str, list[str]]:
    """The command that a command line names, what it is called there, and the words that follow."""
    words, called = list(arguments), "memory-mcp"
    while words and (inner := getattr(command, "commands", {}).get(words[0])):
        command, called = inner, f"{called} {words.pop(0)}"
    return command, called, words


def is_wanted(command: Any, words: Sequence[str]) -> bool:
    """Whether the words after a command ask for its page, as a group without any does."""
    return "--help" in (words[: words.index("--")] if "--" in words else words) or (not words and hasattr(command, "commands"))


def page(command: Any, name: str) -> str:
    """The page of a command that is called by this name: how it is called, what it does, and its arguments, options and commands."""
    titles = catalog()["titles"]
    shown = [parameter for parameter in command.params if not parameter.hidden]
    arguments = [parameter for parameter in shown if parameter.param_type_name == "argument"]
    options = [*(parameter for parameter in shown if parameter not in arguments), command.get_help_option(typer.Context(command))]
    inner = [each for each in getattr(command, "commands", {}).values() if not each.hidden]
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *map(_names, arguments), *(["COMMAND [ARGS]..."] if inner else [])])
    tables = {
        titles["arguments"]: [(_names(parameter), _described(parameter)) for parameter in arguments],
        titles["options"]: [(_names(parameter), _described(parameter)) for parameter in options],
        titles["commands"]: [(str(each.name), in_words(each.help).partition("\n")[0]) for each in inner],
    }
    parts = [f"{titles['usage']}: {usage}", *("\n".join(_broken(text, 0)) for text in in_words(command.help).split("\n\n"))]
    parts += ["\n".join([f"{title}:", *_table(rows)]) for title, rows in tables.items() if rows]
    return "\n\n".join(parts)


def in_words(text: str) -> str:
    """A help text in Japanese, a paragraph at a time. What the catalog lacks stays English."""
    return "\n\n".join(catalog()["help"].get(paragraph, paragraph) for paragraph in paragraphs(text))


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a help text, each on one line."""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def descriptions(command: Any) -> Iterator[Any]:
    """The command, its parameters and its sub-commands, as far as they have help."""
    parameters = [*command.params, command.get_help_option(typer.Context(command))]
    for described in (command, *parameters):
        if getattr(described, "help", None):
            yield described
    for inner in getattr(command, "commands", {}).values():
        yield from descriptions(inner)


def _names(parameter: Any) -> str:
    value = parameter.metavar or str(parameter.name).upper()
    if parameter.param_type_name == "argument":
        return value if parameter.required else f"[{value}]"
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return names if getattr(parameter, "is_flag", False) else f"{names} {value}"


def _described(parameter: Any) -> str:
    titles, default = catalog()["titles"], parameter.default
    is_shown = not (parameter.required or callable(default) or isinstance(default, bool) or default in (None, "", ()))
    marks = [titles["default"].format(default)] if is_shown else [titles["required"]] if parameter.required else []
    return " ".join([in_words(parameter.help), *marks])


def _table(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The rows, each with its text in a second column; below the names where they are long."""
    for names, text in rows:
        first, *rest = _broken(text, NAMES_WIDTH)
        if len(names) > NAMES_WIDTH - 4:
            yield f"  {names}"
            names = ""  # noqa: PLW2901  they are on a line of their own
        yield f"  {names:{NAMES_WIDTH - 2}}{first}"
        yield from (" " * NAMES_WIDTH + line for line in rest)


def _broken(text: str, indent: int) -> list[str]:
    """The lines of a text beside an indentation."""
    width = max(min(shutil.get_terminal_size().columns, WIDTH_LIMIT) - indent - 1, 20)
    starts = [0, *line_breaks(text, width), len(text)]
    return [text[start:end].rstrip() for start, end in pairwise(starts)]


def line_breaks(text: str, width: int) -> list[int]:
    """Where lines of at most `width` cells end. Spaces at the end of a line count."""
    from rich.cells import cell_len  # noqa: PLC0415  only pages of help need it

    breaks, cells = [], 0
    for piece in _UNBROKEN.finditer(text):
        whole = cell_len(piece[0]) <= width
        for start, part in [(0, piece[0])] if whole else enumerate(piece[0]):
            if cells and cells + cell_len(part) > width:
                breaks.append(piece.start() + start)
                cells = 0
            cells += cell_len(part)
    return breaks
