"""The words of every error that the product raises, read from its source: `{0}` where a value stands."""

import ast
from collections.abc import Iterator
from pathlib import Path

from memory_mcp import errors

PACKAGE = Path(errors.__file__).parent
ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.MemoryMCPError)}


def wordings(part: str = "") -> set[str]:
    """The sentences of the program, or of a part of it, each with its alternatives."""
    return {sentence for path in (PACKAGE / part).rglob("*.py") for sentence in _of_file(path)}


def _of_file(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and len(node.args) <= 3:
            for what, why, do in _parts(node.args):
                yield _numbered((f"{what}: {why}." if why else f"{what}.") + (f" {do}." if do else ""))


def _parts(arguments: list[ast.expr]) -> Iterator[tuple[str, str, str]]:
    texts = [list(_texts(argument)) for argument in arguments] + [[""]] * (3 - len(arguments))
    for what in texts[0]:
        for why in texts[1]:
            for do in texts[2]:
                yield what, why, do


def _texts(node: ast.expr) -> Iterator[str]:
    """What an expression may say: a constant, an f-string, or one or the other."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=first, orelse=second):
            yield from _texts(first)
            yield from _texts(second)
        case ast.JoinedStr(values=values):
            yield "".join(value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else "\0" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            for first in _texts(left):
                for second in _texts(right):
                    yield first + second
        case _:
            yield "\0"


def _numbered(text: str) -> str:
    pieces = text.split("\0")
    return "".join(piece + (f"{{{number}}}" if number < len(pieces) - 1 else "") for number, piece in enumerate(pieces))
