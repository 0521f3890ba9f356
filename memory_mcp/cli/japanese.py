"""Help and errors of commands in Japanese, for people. What programs and models read stays as it is."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memory_mcp.config.reading import language_of_machine
from memory_mcp.errors import without_passwords

if TYPE_CHECKING:
    from memory_mcp.server.translations import Translations

USAGE_HINT = re.compile(r" See `(memory-mcp[a-z -]*) --help`\.$")
# What a line break leaves whole: a word in Latin letters or katakana, or any other character, with the punctuation that belongs to it.
_UNBROKEN = re.compile(
    r"\s{0,200}+[（「『【]{0,20}(?:[ァ-ヺー]++|[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]++)[、。，．・：；？！）」』】…ぁぃぅぇぉっゃゅょ々ー]*+\s*+"
)


def translate_help(command: Any, *, page: bool) -> None:
    """Gives a tree of commands Japanese help; with `page` also the page that shows it. What the table lacks stays English."""
    table: Mapping[str, str] = _tables()["help"]
    for described in descriptions(command):
        described.help = "\n\n".join(table.get(paragraph, paragraph) for paragraph in paragraphs(described.help))
    if page:
        # Imported here: only pages of help need them.
        from rich import text  # noqa: PLC0415
        from typer import rich_utils  # noqa: PLC0415

        for name, title in _tables()["titles"].items():
            setattr(rich_utils, name, title)
        # rich breaks lines at spaces only, and cuts off what is longer than a line: nearly every sentence in Japanese.
        setattr(text, "divide_line", line_breaks)  # noqa: B010


def line_breaks(text: str, width: int, fold: bool = True) -> list[int]:  # noqa: ARG001  as rich calls it
    """Where lines of at most `width` cells end, in place of the function of rich. Spaces at the end of a line count."""
    from rich.cells import cell_len  # noqa: PLC0415  as above

    breaks, cells = [], 0
    for piece in _UNBROKEN.finditer(text):
        whole = cell_len(piece[0]) <= width
        for start, part in [(0, piece[0])] if whole else enumerate(piece[0]):
            if cells and cells + cell_len(part) > width:
                breaks.append(piece.start() + start)
                cells = 0
            cells += cell_len(part)
    return breaks


def descriptions(command: Any) -> Iterator[Any]:
    """The command, its parameters and its sub-commands, as far as they have help."""
    parameters = [*command.params, command.get_help_option(typer.Context(command))]
    for described in (command, *parameters):
        if getattr(described, "help", None):
            yield described
    for inner in getattr(command, "commands", {}).values():
        yield from descriptions(inner)


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a help text, each on one line."""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def error(message: str) -> str:
    """The line for an error of a command or of a server, unchanged where there is no translation."""
    # Imported here: commands that succeed don't need the tables of the server.
    from memory_mcp.server.refusals import sentence_in  # noqa: PLC0415
    from memory_mcp.server.translations import Translations  # noqa: PLC0415

    tables = _tables()
    of_commands = Translations.of({**tables["errors"], **tables["usage"]}, tables["parts"])
    if hint := USAGE_HINT.search(message):
        mistake = message[: hint.start()]
        return f"{of_commands.find(mistake) or mistake}{tables['parts']['See `{0} --help`.'].replace('{0}', hint[1])}"
    return of_commands.find(message) or sentence_in(message, "ja")


def worded(sentence: str) -> str:
    """A sentence of a command in the language of the machine; unchanged where there is no translation. Its indentation stays."""
    words = sentence.strip()
    if language_of_machine() != "ja" or not words:
        return sentence
    translated = _output_translations().find(words)
    # `{0}: {1}` fits also what only the other tables have words for.
    return sentence.replace(words, error(words) if translated in (None, words) else translated)


def named(kind: str, name: str) -> str:
    """A name that programs read, such as `keyword`, where the machine is Japanese after what pages call it: 単語 [keyword]."""
    if language_of_machine() != "ja":
        return name
    from memory_mcp.server.terms import Terms  # noqa: PLC0415  as above

    meaning = Terms("ja").term(kind, name)
    return name if meaning == name else f"{meaning} [{name}]"


def term(kind: str, value: str) -> str:
    """What pages call a name that programs read, such as a format, in the language of the machine."""
    from memory_mcp.server.terms import Terms  # noqa: PLC0415  as above

    return Terms(language_of_machine()).term(kind, value)


def left_out_kind(kind: str) -> str:
    """A kind of what an import leaves out, in the language of the machine."""
    from memory_mcp.server.terms import Terms  # noqa: PLC0415  as above

    return Terms(language_of_machine()).left_out(kind)


def named_counts(kind: str, counts: Mapping[str, int]) -> str:
    """`1 phone, 2 email`, each name as in `named`."""
    if language_of_machine() != "ja":
        return ", ".join(f"{count} {name}" for name, count in counts.items())
    return "、".join(f"{named(kind, name)} {count}件" for name, count in counts.items())


def refusal(sentence: str) -> str:
    """Why something was refused, in the language of the machine."""
    return error(sentence) if language_of_machine() == "ja" else sentence


def tell(sentence: str, *, err: bool = False, dim: bool | None = None) -> None:
    """Prints a sentence of a command, in the language of the machine."""
    typer.secho(worded(without_passwords(sentence)), err=err, dim=dim)


@cache
def _output_translations() -> "Translations":
    from memory_mcp.server.translations import Translations  # noqa: PLC0415  as above

    return Translations.of(_tables()["told"], _tables()["parts"])


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_name("japanese.toml").read_text(encoding="utf-8"))
