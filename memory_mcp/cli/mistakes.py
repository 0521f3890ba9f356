"""What is wrong with a command line, in Japanese: typer words it in English alone, so the facts come from its errors and from the line."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from memory_mcp.wording import Sentence, sentence

# How pydantic names what a value is not, and the fact that it adds.
_LIMITS = {
    "less_than_equal": ("Invalid value for {}: it must be less than or equal to {}.", "le"),
    "greater_than_equal": ("Invalid value for {}: it must be greater than or equal to {}.", "ge"),
}
_KINDS = {
    "int_parsing": "Invalid value for {}: it must be an integer.",
    "float_parsing": "Invalid value for {}: it must be a number.",
}


def mistake(error: Any, command: Any, words: Sequence[str]) -> Sentence | None:
    """The sentence for an error of typer in a command that was given these words; None if nothing is known of it."""
    if (possible := getattr(error, "possibilities", ())) != ():
        return (
            sentence("No such option: {}.", error.option_name) if not possible else sentence(_NEAR, error.option_name, ", ".join(possible))
        )
    if hasattr(error, "option_name"):
        return sentence("Option {} requires an argument.", repr(error.option_name))
    if parameter := getattr(error, "param", None):
        return _of_parameter(error, parameter, command, words)
    commands = getattr(command, "commands", {})
    if commands and words:
        near = get_close_matches(words[0], [name for name in commands if not commands[name].hidden])
        if near:
            return sentence("No such command {}. Did you mean {}?", repr(words[0]), ", ".join(map(repr, near)))
        return sentence("No such command {}.", repr(words[0]))
    return sentence("Got unexpected extra arguments ({}).", " ".join(_extra(command, words))) if _extra(command, words) else None


_NEAR = "No such option: {} (Possible options: {})."


def _of_parameter(error: Any, parameter: Any, command: Any, words: Sequence[str]) -> Sentence | None:
    name = parameter.get_error_hint()
    if not error.message:
        return sentence("Missing argument {}." if parameter.param_type_name == "argument" else "Missing option {}.", name)
    problems = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []
    for problem in problems[:1]:
        if limit := _LIMITS.get(problem["type"]):
            return sentence(limit[0], name, f"{problem['ctx'][limit[1]]:g}")
        if kind := _KINDS.get(problem["type"]):
            return sentence(kind, name)
        return sentence("Invalid value for {}: {} is none of those that it takes.", name, repr(problem["input"]))
    path = Path(str(_parsed(command, words)[0].get(parameter.name, "")))
    if not path.exists():
        return sentence("{} does not exist.", path)
    return sentence("{} is a directory." if path.is_dir() else "{} is a file.", path)


def _extra(command: Any, words: Sequence[str]) -> Sequence[str]:
    """The words that no argument takes."""
    rest: Sequence[str] = _parsed(command, words)[1]
    return rest


def _parsed(command: Any, words: Sequence[str]) -> Any:
    return command.make_parser(typer.Context(command)).parse_args(list(words))
