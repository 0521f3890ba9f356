"""`memory-mcp connect`: the settings for a client, and instructions that make its model use the memory: printed, written, or taken out."""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer

from memory_mcp.cli.client_files import (
    FileChange,
    before_ours,
    changed_settings,
    commands_of,
    is_bare,
    put,
    replace_hooks,
    replaced,
    take_out,
    tree_of,
    with_block,
)
from memory_mcp.cli.client_recipes import QUESTION, ClientName, Form, Recipe, Target, dumped, entries_in, hook_of, recipe_of
from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import DataDirectory, Url, store_of
from memory_mcp.config.reading import default_persona, default_token, language_of_machine, personal_data_directory
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.names import addressed_name, canonical_name

# What clients accept as the name of a server, which most put before the names of its tools.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


class Part(StrEnum):
    BOTH = "both"
    SNIPPET = "snippet"
    INSTRUCTIONS = "instructions"
    HOOKS = "hooks"
    GATEWAY = "gateway"


class Scope(StrEnum):
    PROJECT = "project"
    USER = "user"


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
    scope: Annotated[Scope, typer.Option(help="For this project, or for all of yours.")] = Scope.PROJECT,
    file: Annotated[Path | None, typer.Option("--file", help="The settings file, instead of the client's usual one.")] = None,
    language: Annotated[Language | None, typer.Option(help="Of the instructions. Default: the language of this machine.")] = None,
    url: Url = None,
    data: DataDirectory = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace another program's server of that name, which --remove puts back; with --remove: also instructions that other clients read.",
        ),
    ] = False,
    with_token: Annotated[
        bool | None, typer.Option("--with-token/--no-token", help="Include a placeholder for a token. Default: if MEMORY_MCP_TOKEN is set.")
    ] = None,
    only: Annotated[Part, typer.Option(help="Only one part.")] = Part.BOTH,
) -> None:
    """Print or write the settings for a client, and instructions that tell its model when to remember and recall."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("{} can't be the name of a server", "", "Use letters, digits, - and _, 32 at most", repr(name))
    if write and remove:
        raise InvalidInput("--write and --remove contradict each other", "", "Use one of them")
    recipe = _recipe(client, scope, with_hooks=hooks or only is Part.HOOKS)
    parts = _parts(recipe, client, only, with_hooks=hooks)
    if remove:
        _remove_from_files(recipe, name, canonical_name(persona) if persona else None, parts, file, force=force)
        return
    has_token = bool(default_token()) if with_token is None else with_token
    persona = default_persona() if persona is None else persona
    if persona is None:
        raise InvalidInput("no persona is named", "a client remembers as one of them", "Name it with --persona")
    is_called = Part.SNIPPET in parts and not (stdio or recipe.only_stdio)
    server, arguments = _server(url, data, persona, is_called=is_called)
    target = Target(server, addressed_name(persona), has_token, name, stdio, arguments)
    language = language or Language(language_of_machine())
    if write:
        _write_files(recipe, target, language, parts, file, force=force)
    else:
        _print_parts(recipe, target, instructions(language, name, target.persona), parts, only)


def _recipe(client: ClientName, scope: Scope, *, with_hooks: bool) -> Recipe:
    """Raises InvalidInput if the client has no such settings, or runs no hooks."""
    recipe = recipe_of(client, of_user=scope is Scope.USER)
    if recipe is None:
        raise InvalidInput("{} has no settings for all projects that are known here", "", "Remove --scope", client)
    if with_hooks and not recipe.hooks:
        raise InvalidInput("{} runs no hooks", "", "Remove --hooks", client)
    return recipe


def _parts(recipe: Recipe, client: ClientName, only: Part, *, with_hooks: bool) -> list[Part]:
    """What is printed or written.

    Raises:
        InvalidInput: the client has no such part.
    """
    known = {
        Part.SNIPPET: True,
        Part.HOOKS: with_hooks or only is Part.HOOKS,
        Part.GATEWAY: bool(recipe.gateway),
        Part.INSTRUCTIONS: bool(recipe.instructions),
    }
    if only is not Part.BOTH and not known[only]:
        raise InvalidInput("{} has no part {}", "", "Remove --only", client, repr(only.value))
    return [part for part, is_there in known.items() if is_there and only in (Part.BOTH, part)]


def _server(url: str | None, data: Path | None, persona: str, *, is_called: bool) -> tuple[str, tuple[str, ...]]:
    """The address for clients that call a server, and the options by which `memory-mcp stdio` and hooks find the same memories: clients start
    them in another directory and environment.

    Raises:
        ServerUnreachable: the client calls, and at its address answers the server of another store.
    """
    from memory_mcp.client import stores  # noqa: PLC0415  `--help` doesn't need the HTTP client
    from memory_mcp.personas.server_lock import read_note  # noqa: PLC0415  as above

    store = store_of(url, persona, data)
    if store.server and (store.directory is None or isinstance(stores.place(url, data), str)):
        return store.server.url, ("--url", store.server.url)
    if store.server is None and store.is_taken and is_called:
        store.served()
    directory = (store.directory or personal_data_directory()).resolve()
    note = read_note(directory)
    # A `memory-mcp stdio` that serves answers elsewhere each time: `serve` takes over from it, at the configured address.
    lasts = store.server is not None and note is not None and not note.yields
    return store.server.url if store.server and lasts else store.address, ("--data", str(directory))


def instructions(language: Language, name: str = "memory", persona: str | None = None) -> str:
    """The instructions for a model about a memory, as Markdown: whose it is, where a client may have several, and when to use it."""
    directory = Path(__file__).parent / "instructions"
    whose = (directory / f"{'one_of_many' if persona else 'alone'}.{language}.md").read_text(encoding="utf-8").strip()
    text = (directory / f"{language}.md").read_text(encoding="utf-8").replace("$whose", whose)
    # A comment would end the block of instructions in a client's file.
    return Template(text).substitute(name=name, persona=(persona or "").replace("<!--", "").replace("-->", ""))


def _write_files(recipe: Recipe, target: Target, language: Language, parts: Sequence[Part], file: Path | None, *, force: bool) -> None:
    """Writes these parts, and prints what changed. Our hooks of a persona that the server had until now become those of its new one."""
    changed = _settings_file(recipe, file, parts) if Part.SNIPPET in parts else None
    tree = tree_of(changed, recipe.form) if changed else {}
    if changed and target.name in (entries := entries_in(tree, recipe.keys)) and not (force or recipe.is_ours(entries[target.name])):
        raise InvalidInput(
            "{} has another server called {}",
            "it is not one of Memory MCP",
            "Give this one another name with --name, or replace that one with --force",
            changed,
            repr(target.name),
        )
    personas = recipe.personas_in(tree)
    earlier = personas.pop(target.name, target.persona)
    if changed:
        _change_settings(recipe, changed, target.name, lambda tree: put(tree, recipe.tree(target)))
    if hooks := recipe.hooks:
        path = hooks.file
        is_left = earlier != target.persona and earlier not in personas.values() and _has_hooks(path, earlier)
        if is_left or Part.HOOKS in parts:
            ours = [target.persona, *([earlier] if is_left else [])]
            _change_hooks(path, lambda command: _is_of(command, ours), hooks.tree(target))
        if is_left:
            tell("The hooks that imported into {} now import into {}.", earlier, target.persona)
    if Part.INSTRUCTIONS not in parts:
        return
    guide = _guide(recipe, language, target.name, target.persona)
    if recipe.instructions_file:
        _change_instructions(recipe.instructions_file, target.name, guide, lambda text: _with_names(text, recipe, personas))
    else:
        _print_part(recipe.instructions, guide, Part.BOTH)


def _guide(recipe: Recipe, language: Language, name: str, persona: str) -> str:
    """The instructions of a server. They name nobody where clients that read the same file know another persona by this name."""
    others = {other.personas_in(tree_of(path, other.form)).get(name, persona) for _, other, path in _clients_beside(recipe)}
    return instructions(language, name, persona if others <= {persona} else None)


def _with_names(text: str, recipe: Recipe, personas: Mapping[str, str]) -> str:
    """A file with instructions of earlier versions, which named nobody, as this one writes them: they stand beside others from now on."""
    for name, persona in personas.items():
        for language in Language:
            text = text.replace(instructions(language, name).rstrip(), _guide(recipe, language, name, persona).rstrip())
    return text


def _remove_from_files(recipe: Recipe, name: str, persona: str | None, parts: Sequence[Part], file: Path | None, *, force: bool) -> None:
    """Takes these parts out, and prints what changed: the hooks of the server's persona and of `persona`; without either all that are of no
    other server."""
    settings = _settings_file(recipe, file, parts)
    tree = tree_of(settings, recipe.form) if settings else {}
    entry, personas = entries_in(tree, recipe.keys).get(name), recipe.personas_in(tree)
    own = [each for each in (personas.pop(name, None), persona) if each]
    if settings and Part.SNIPPET in parts:
        _remove_server(recipe, settings, name, entry)
    if (hooks := recipe.hooks) and hooks.file.exists() and list(parts) != [Part.INSTRUCTIONS]:
        _change_hooks(hooks.file, partial(_is_removed, own=own, others=list(personas.values())), {})
    if Part.INSTRUCTIONS in parts and recipe.instructions_file:
        beside = _clients_beside(recipe)
        needing = dict.fromkeys(client for client, other, path in beside if name in other.personas_in(tree_of(path, other.form)))
        if needing and not force:
            listed = ", ".join(needing)
            tell("The instructions in {} stay: {} needs them, too.", recipe.instructions_file, listed)
        else:
            _change_instructions(recipe.instructions_file, name, None)


def _remove_server(recipe: Recipe, settings: Path, name: str, entry: Any) -> None:
    if entry is not None and not recipe.is_ours(entry):
        tell("The server called {} in {} is another program's, and stays.", name, settings)
        return
    before, kept = before_ours(settings, recipe.form, recipe.keys, name, recipe.is_ours)
    _change_settings(recipe, settings, name, lambda tree: take_out(tree, recipe.keys, name, QUESTION, before, kept))


def _clients_beside(recipe: Recipe) -> list[tuple[ClientName, Recipe, Path]]:
    """The other clients that read the same file of instructions, with each of their settings files that is there."""
    if recipe.instructions_file is None:
        return []
    shared = recipe.instructions_file.resolve()  # CLAUDE.md may be a link to AGENTS.md
    others = [
        (client, each)
        for client in ClientName
        if (each := recipe_of(client))
        and each.location != recipe.location
        and each.instructions_file
        and each.instructions_file.resolve() == shared
    ]
    return [
        (client, each, known.file)
        for client, each in others
        for known in (each, recipe_of(client, of_user=True))
        if known and known.file and known.file.exists()
    ]


def _is_removed(command: str, own: Sequence[str], others: Sequence[str]) -> bool:
    return _is_of(command, own) if own else _is_of(command) and not _is_of(command, others)


def _settings_file(recipe: Recipe, file: Path | None, parts: Sequence[Part]) -> Path | None:
    """The settings file, which has to be known to change it."""
    settings = file or recipe.file
    if settings is None and Part.SNIPPET in parts:
        raise InvalidInput("these settings belong to {}", "", "Paste them there, or name a file with --file", recipe.location)
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


def _change_settings(recipe: Recipe, path: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    def take_out_ours(tree: dict[str, Any]) -> None:
        if recipe.is_ours(entries_in(tree, recipe.keys).get(name)):
            take_out(tree, recipe.keys, name, QUESTION)

    _change_tree(path, recipe.form, change, take_out_ours)


def _change_hooks(path: Path, is_ours: Callable[[str], bool], added: Mapping[str, Any]) -> None:
    _change_tree(path, Form.JSON, lambda tree: replace_hooks(tree, is_ours, added), lambda tree: replace_hooks(tree, _is_of, {}))


def _change_tree(path: Path, form: Form, change: Callable[[dict[str, Any]], None], take_out_ours: Callable[[dict[str, Any]], None]) -> None:
    _change(
        path,
        FileChange(
            lambda text: changed_settings(text, form, change, path),
            lambda text: changed_settings(text, form, take_out_ours, path),
            lambda text: is_bare(text, form, path),
        ),
    )


def _change_instructions(path: Path, name: str, guide: str | None, further: Callable[[str], str] = str) -> None:
    _change(path, FileChange(lambda text: further(with_block(text, name, guide)), lambda text: with_block(text, name, None)))


def _change(path: Path, change: FileChange) -> None:
    difference, kept = replaced(path, change)
    typer.echo(f"── {path.absolute()}{'' if difference else worded(': nothing to change')}")
    if difference:
        typer.echo(difference)
    if kept:
        tell("The earlier state is kept as {}.", kept)


def _print_parts(recipe: Recipe, target: Target, guide: str, parts: Sequence[Part], only: Part) -> None:
    if Part.SNIPPET in parts:
        _print_part(recipe.location, recipe.text(target), only)
    if Part.HOOKS in parts and recipe.hooks:
        _print_part(str(recipe.hooks.file), dumped(recipe.hooks.tree(target), Form.JSON), only)
    if Part.GATEWAY in parts and recipe.gateway:
        _print_part(recipe.gateway_location, recipe.gateway_text(target), only)
    if Part.INSTRUCTIONS in parts:
        _print_part(recipe.instructions, guide, only)


def _print_part(location: str, text: str, only: Part) -> None:
    """Prints the text on stdout, with its location as a heading, or on stderr if only one part is printed."""
    if only is Part.BOTH:
        typer.echo(f"── {worded(location)}\n")
    else:
        typer.echo(f"── {worded(location)}", err=True)
    typer.echo(text.rstrip() + ("\n" if only is Part.BOTH else ""))
