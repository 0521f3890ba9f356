"""What commands tell people, in the language of the machine. What programs and models read stays as it is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from memory_mcp.config.reading import language_of_machine
from memory_mcp.errors import without_passwords
from memory_mcp.wording import Sentence, in_language, sentence

if TYPE_CHECKING:
    from memory_mcp.server.terms import Terms


def worded(text: str, *values: object) -> str:
    """A sentence of a command in the language of the machine, with a value for each `{}`; unchanged where there is no translation."""
    return in_language(sentence(text, *values) if values else text, language_of_machine())


def named(kind: str, name: str) -> str:
    """A name that programs read, such as `keyword`, where the machine is Japanese after what pages call it: 単語 [keyword]."""
    if language_of_machine() != "ja":
        return name
    meaning = terms().term(kind, name)
    return name if meaning == name else f"{meaning} [{name}]"


def terms() -> "Terms":
    """What pages call names that programs read, such as a format, in the language of the machine."""
    # Imported here: most commands don't need the tables of the server.
    from memory_mcp.server.terms import Terms  # noqa: PLC0415

    return Terms(language_of_machine())


def named_counts(kind: str, counts: Mapping[str, int]) -> str:
    """`1 phone, 2 email`, each name as in `named`."""
    if language_of_machine() != "ja":
        return ", ".join(f"{count} {name}" for name, count in counts.items())
    return "、".join(f"{named(kind, name)} {count}件" for name, count in counts.items())


def tell(text: str, *values: object, err: bool = False, dim: bool | None = None) -> None:
    """Prints a sentence of a command as `worded` has it, without the passwords of addresses."""
    told = sentence(text, *values) if values else text
    shown = told.with_values(without_passwords) if isinstance(told, Sentence) else without_passwords(told)
    typer.secho(in_language(shown, language_of_machine()), err=err, dim=dim)
