"""The ids of all sentences that the product says, read from its source: the English with `{}` where a value stands."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from memory_mcp import errors

PACKAGE = Path(errors.__file__).parent
ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.MemoryMCPError)}
# Functions of which an argument is a sentence, and which one: the others are findings of `doctor`, of something.
SAYING = {"sentence": 0, "tell": 0, "worded": 0, "ok": 1, "note": 1, "wrong": 1}


def wordings(part: str = "") -> set[str]:
    """The sentences of errors of the program, or of a part of it, each with its alternatives; without those that repeat others."""
    return {sentence for call in _calls(part) if call.func.id in ERRORS for sentence in _of_error(call) if sentence.strip("{}:;. ")}  # type: ignore[attr-defined]


def sayings(part: str = "", functions: Mapping[str, int] = SAYING) -> set[str]:
    """What these functions are called with, without blanks around it; also where that stands in a variable."""
    said = set()
    for path in (PACKAGE / part).rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        variables: dict[str, list[ast.expr]] = {}
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                variables.setdefault(node.targets[0].id, []).append(node.value)
        for node in nodes:
            place = functions.get(node.func.id) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
            for argument in node.args[place : place + 1] if place is not None else ():
                expressions = variables.get(argument.id, []) if isinstance(argument, ast.Name) else [argument]
                said |= {text.strip() for expression in expressions for text in said_by(expression)}
    return said


def unplaced() -> list[str]:
    """Errors that format a clause themselves, or whose values don't fit their places."""
    return [f"line {call.lineno}: {ast.unparse(call)}" for call in _calls("") if call.func.id in ERRORS and not _fits(call)]  # type: ignore[attr-defined]


def _fits(call: ast.Call) -> bool:
    clauses, values = call.args[: 1 if call.func.id == "NotInstalled" else 3], call.args[3:]  # type: ignore[attr-defined]
    if any(isinstance(clause, ast.JoinedStr) for clause in clauses):
        return False
    if not all(isinstance(clause, ast.Constant) for clause in clauses) or any(isinstance(value, ast.Starred) for value in values):
        return True
    places = sum(str(clause.value).count("{}") for clause in clauses if isinstance(clause, ast.Constant))
    return places == len(values) or not values


def _calls(part: str) -> Iterator[ast.Call]:
    for path in (PACKAGE / part).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield node


def _of_error(call: ast.Call) -> Iterator[str]:
    if call.func.id == "NotInstalled":  # type: ignore[attr-defined]
        yield "{}: the extra {} is not installed. Run: {}."
        return
    arguments = call.args[: 2 if call.func.id == "TooManyCalls" else 3]  # type: ignore[attr-defined]
    parts = [list(said_by(argument)) for argument in arguments] + [[""]] * (3 - len(arguments))
    for what in parts[0]:
        for why in parts[1]:
            for do in parts[2]:
                yield (f"{what}: {why}." if why else f"{what}.") + (f" {do}." if do else "")


def said_by(node: ast.expr) -> Iterator[str]:
    """What an expression may say: a constant, a sentence, or one or the other."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=first, orelse=second):
            yield from said_by(first)
            yield from said_by(second)
        case ast.Call(func=ast.Name(id="sentence"), args=[first, *_]):
            yield from said_by(first)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            for first in said_by(left):
                for second in said_by(right):
                    yield first + second
        case _:
            yield "{}"
