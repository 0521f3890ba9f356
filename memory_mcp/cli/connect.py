"""`memory-mcp connect`: the settings for a client, and instructions that make its model use the memory: printed, written, or taken out."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from memory_mcp.cli.client_files import changed_settings, put, replace_hooks, replaced, take_out, with_block
from memory_mcp.cli.client_recipes import QUESTION, RECIPES, ClientName, Form, Recipe, Target, dumped
from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import Url, connection, server_url
from memory_mcp.config.reading import (
    default_persona,
    default_server_url,
    default_token,
    language_of_machine,
    personal_data_directory,
    user_data_directory,
)
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.names import canonical_name

# What clients accept as the name of a server, which most put before the names of its tools.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


class Part(StrEnum):
    BOTH = "both"
    SNIPPET = "snippet"
    INSTRUCTIONS = "instructions"
    HOOKS = "hooks"


class Language(StrEnum):
    JAPANESE = "ja"
    ENGLISH = "en"


def connect(
    client: Annotated[ClientName, typer.Option(help="The program that will use the memory.")],
    persona: Annotated[
        str | None, typer.Option("--persona", "-p", help="The persona to connect to. Default: MEMORY_MCP_PERSONA.", metavar="NAME")
    ] = None,
    name: Annotated[str, typer.Option(help="What the client calls the server; another one for a second persona.")] = "memory",
    write: Annotated[bool, typer.Option("--write", help="Put the settings and the instructions into the client's files.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take them out of the client's files.")] = False,
    stdio: Annotated[bool, typer.Option("--stdio", help="Let the client start the server itself, without HTTP.")] = False,
    hooks: Annotated[
        bool, typer.Option("--hooks", help="Also give the context at the beginning of a conversation, and import what was said at its end.")
    ] = False,
    file: Annotated[Path | None, typer.Option("--file", help="The settings file, instead of the client's usual one.")] = None,
    language: Annotated[Language | None, typer.Option(help="Of the instructions. Default: the language of this machine.")] = None,
    url: Url = None,
    with_token: Annotated[
        bool | None, typer.Option("--with-token/--no-token", help="Include a placeholder for a token. Default: if MEMORY_MCP_TOKEN is set.")
    ] = None,
    only: Annotated[Part, typer.Option(help="Only one part.")] = Part.BOTH,
) -> None:
    """Print or write the settings for a client, and instructions that tell its model when to remember and recall."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} can't be the name of a server", "", "Use letters, digits, - and _, 32 at most")
    has_token = bool(default_token()) if with_token is None else with_token
    persona = persona or default_persona()
    if persona is None:
        raise InvalidInput("no persona is named", "a client remembers as one of them", "Name it with --persona")
    server = connection(server_url(url), persona).url
    target = Target(server, canonical_name(persona), has_token, name, stdio, _stdio_arguments(server if url else None))
    recipe = RECIPES[client]
    if (hooks or only is Part.HOOKS) and not recipe.hooks:
        raise InvalidInput(f"{client} runs no hooks", "", "Remove --hooks")
    guide = instructions(language or Language(language_of_machine()), name)
    if write and remove:
        raise InvalidInput("--write and --remove contradict each other", "", "Use one of them")
    all_parts = [Part.SNIPPET, *([Part.HOOKS] if hooks else []), Part.INSTRUCTIONS]
    parts = all_parts if only is Part.BOTH else [only]
    if write or remove:
        _change_files(recipe, target, guide if write else None, parts, file)
        return
    if Part.SNIPPET in parts:
        _print_part(recipe.location, recipe.text(target), only)
    if Part.HOOKS in parts and recipe.hooks:
        _print_part(str(recipe.hooks.file()), dumped(recipe.hooks.tree(target), Form.JSON), only)
    if Part.INSTRUCTIONS in parts:
        _print_part(recipe.instructions, guide, only)


def _stdio_arguments(server: str | None) -> tuple[str, ...]:
    """The options by which `memory-mcp stdio` finds the same memories as here: clients start it in another directory and environment."""
    if address := server or default_server_url():
        return "--url", address
    directory = personal_data_directory()
    return () if directory == user_data_directory() else ("--data", str(directory.resolve()))


def instructions(language: Language, name: str = "memory") -> str:
    """The instructions for a model about the memory, as Markdown."""
    text = (Path(__file__).parent / "instructions" / f"{language}.md").read_text(encoding="utf-8")
    return Template(text).substitute(name=name)


def _change_files(recipe: Recipe, target: Target, guide: str | None, parts: Sequence[Part], file: Path | None) -> None:
    """Writes these parts, or takes them out where `guide` is None, and prints what changed."""
    if Part.SNIPPET in parts:
        settings = file or (recipe.file() if recipe.file else None)
        if settings is None:
            raise InvalidInput(f"these settings belong to {recipe.location}", "", "Paste them there, or name a file with --file")
        _change(settings, lambda text: changed_settings(text, recipe.form, lambda tree: _put_server(tree, recipe, target, guide), settings))
    if (hooks := recipe.hooks) and (Part.HOOKS in parts or (guide is None and hooks.file().exists())):
        added = hooks.tree(target) if guide else {}
        path = hooks.file()
        _change(path, lambda text: changed_settings(text, Form.JSON, lambda tree: replace_hooks(tree, target.hook_of_persona, added), path))
    if Part.INSTRUCTIONS in parts and recipe.instructions_file:
        _change(recipe.instructions_file, lambda text: with_block(text, target.name, guide))
    elif Part.INSTRUCTIONS in parts and guide is not None:
        _print_part(recipe.instructions, guide, Part.BOTH)


def _put_server(tree: dict[str, object], recipe: Recipe, target: Target, guide: str | None) -> None:
    if guide is None:
        take_out(tree, recipe.keys, target.name, QUESTION)
    else:
        put(tree, recipe.tree(target))


def _change(path: Path, change: Callable[[str], str]) -> None:
    difference, kept = replaced(path, change, datetime.now(UTC))
    typer.echo(f"── {path.absolute()}{'' if difference else worded(': nothing to change')}")
    if difference:
        typer.echo(difference)
    if kept:
        tell(f"The earlier file is kept as {kept.name}.")


def _print_part(location: str, text: str, only: Part) -> None:
    """Prints the text on stdout, with its location as a heading, or on stderr if only one part is printed."""
    if only is Part.BOTH:
        typer.echo(f"── {worded(location)}\n")
    else:
        typer.echo(f"── {worded(location)}", err=True)
    typer.echo(text.rstrip() + ("\n" if only is Part.BOTH else ""))
