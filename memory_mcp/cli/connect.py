"""`memory-mcp connect`: the settings for a client, and instructions that make its model use the memory: printed, written, or taken out."""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer

from memory_mcp.cli.client_files import changed_settings, commands_of, put, replace_hooks, replaced, take_out, tree_of, with_block
from memory_mcp.cli.client_recipes import QUESTION, RECIPES, ClientName, Form, Recipe, Target, dumped, hook_of
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
from memory_mcp.personas.names import addressed_name, canonical_name

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
    if write and remove:
        raise InvalidInput("--write and --remove contradict each other", "", "Use one of them")
    recipe = RECIPES[client]
    if (hooks or only is Part.HOOKS) and not recipe.hooks:
        raise InvalidInput(f"{client} runs no hooks", "", "Remove --hooks")
    all_parts = [Part.SNIPPET, *([Part.HOOKS] if hooks else []), Part.INSTRUCTIONS]
    parts = all_parts if only is Part.BOTH else [only]
    if remove:
        _remove_from_files(recipe, name, canonical_name(persona) if persona else None, parts, file)
        return
    has_token = bool(default_token()) if with_token is None else with_token
    persona = default_persona() if persona is None else persona
    if persona is None:
        raise InvalidInput("no persona is named", "a client remembers as one of them", "Name it with --persona")
    server = connection(server_url(url), persona).url
    target = Target(server, addressed_name(persona), has_token, name, stdio, _stdio_arguments(server if url else None))
    guide = instructions(language or Language(language_of_machine()), name)
    if write:
        _write_files(recipe, target, guide, parts, file)
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


def _write_files(recipe: Recipe, target: Target, guide: str, parts: Sequence[Part], file: Path | None) -> None:
    """Writes these parts, and prints what changed. Our hooks of a persona that the server had until now become those of its new one."""
    changed = _settings_file(recipe, file, parts) if Part.SNIPPET in parts else None
    personas = recipe.personas_in(tree_of(changed, recipe.form)) if changed else {}
    earlier = personas.pop(target.name, target.persona)
    if changed:
        _change(
            changed,
            lambda text: changed_settings(text, recipe.form, lambda tree: put(tree, recipe.tree(target)), changed),
            without=lambda text: changed_settings(
                text, recipe.form, lambda tree: take_out(tree, recipe.keys, target.name, QUESTION), changed
            ),
        )
    if hooks := recipe.hooks:
        path = hooks.file()
        is_left = earlier != target.persona and earlier not in personas.values() and _has_hooks(path, earlier)
        if is_left or Part.HOOKS in parts:
            ours = [target.persona, *([earlier] if is_left else [])]
            _change_hooks(path, lambda command: _is_of(command, ours), hooks.tree(target))
        if is_left:
            tell(f"The hooks that imported into {earlier} now import into {target.persona}.")
    if Part.INSTRUCTIONS in parts and recipe.instructions_file:
        _change(
            recipe.instructions_file,
            lambda text: with_block(text, target.name, guide),
            without=lambda text: with_block(text, target.name, None),
        )
    elif Part.INSTRUCTIONS in parts:
        _print_part(recipe.instructions, guide, Part.BOTH)


def _remove_from_files(recipe: Recipe, name: str, persona: str | None, parts: Sequence[Part], file: Path | None) -> None:
    """Takes these parts out, and prints what changed: the hooks of the server's persona and of `persona`; without either all that are of no
    other server."""
    settings = _settings_file(recipe, file, parts)
    personas = recipe.personas_in(tree_of(settings, recipe.form)) if settings else {}
    is_known = name in personas
    own = [each for each in (personas.pop(name, None), persona) if each]
    if settings and Part.SNIPPET in parts:
        _change(
            settings,
            lambda text: changed_settings(text, recipe.form, lambda tree: take_out(tree, recipe.keys, name, QUESTION), settings),
            can_be_written_again=is_known,
        )
    if (hooks := recipe.hooks) and hooks.file().exists() and list(parts) != [Part.INSTRUCTIONS]:
        _change_hooks(hooks.file(), partial(_is_removed, own=own, others=list(personas.values())), {}, can_be_written_again=True)
    if Part.INSTRUCTIONS in parts and recipe.instructions_file:
        _change(recipe.instructions_file, lambda text: with_block(text, name, None), can_be_written_again=True)


def _is_removed(command: str, own: Sequence[str], others: Sequence[str]) -> bool:
    return _is_of(command, own) if own else _is_of(command) and not _is_of(command, others)


def _settings_file(recipe: Recipe, file: Path | None, parts: Sequence[Part]) -> Path | None:
    """The settings file, which has to be known to change it."""
    settings = file or (recipe.file() if recipe.file else None)
    if settings is None and Part.SNIPPET in parts:
        raise InvalidInput(f"these settings belong to {recipe.location}", "", "Paste them there, or name a file with --file")
    return settings


def _is_of(command: str, personas: Sequence[str] | None = None) -> bool:
    """Whether a hook's command is ours, of one of these personas or of any."""
    known_by = ["hook --persona"] if personas is None else [hook_of(persona) for persona in personas]
    return "memory" in command and any(f" {words} " in f" {command} " for words in known_by)


def _has_hooks(path: Path, persona: str) -> bool:
    events = tree_of(path, Form.JSON).get("hooks")
    lists = events.values() if isinstance(events, dict) else ()
    groups = [group for groups in lists if isinstance(groups, list) for group in groups]
    return any(_is_of(command, [persona]) for group in groups for command in commands_of(group))


def _change_hooks(path: Path, is_ours: Callable[[str], bool], added: Mapping[str, Any], *, can_be_written_again: bool = False) -> None:
    change = partial(changed_settings, form=Form.JSON, change=lambda tree: replace_hooks(tree, is_ours, added), where=path)
    without = partial(changed_settings, form=Form.JSON, change=lambda tree: replace_hooks(tree, _is_of, {}), where=path)
    _change(path, change, without=without, can_be_written_again=can_be_written_again)


def _change(
    path: Path, change: Callable[[str], str], *, without: Callable[[str], str] | None = None, can_be_written_again: bool = False
) -> None:
    difference, kept = replaced(path, change, without=without, can_be_written_again=can_be_written_again)
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
