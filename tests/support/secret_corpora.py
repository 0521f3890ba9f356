"""The test strings of gitleaks and detect-secrets, read from checkouts of both: which lines hold a secret, as their authors see it.

Nothing of theirs is copied here. gitleaks keeps its strings as Go expressions; the few functions that they call are evaluated.
"""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from secret_samples import drawn

# Plugins that look for something else than the key of a service.
_OTHER_PLUGINS = frozenset({"ip_public", "high_entropy_strings", "keyword", "base"})
_SETS = {
    "Numeric": "[0-9]",
    "Hex": "[a-f0-9]",
    "AlphaNumeric": "[a-z0-9]",
    "AlphaNumericExtendedShort": "[a-z0-9_-]",
    "AlphaNumericExtended": r"[a-z0-9=_\-]",
    "AlphaNumericExtendedLong": r"[a-z0-9\/=_\+\-]",
}
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|`[^`]*`|[A-Za-z_][\w.]*|:=|\.\.\.|[^\s]', re.DOTALL)
# The layouts that GenerateSampleSecrets puts a secret into: {i} is the service, {s} the secret.
_LAYOUT = re.compile(r'^\s*"[^"\n]+":\s*("(?:\\.|[^"\\])*"|`[^`]*`),', re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A line of a corpus. `secret` is the part that must not be kept, if it is known; a line without one holds no secret."""

    rule: str
    text: str
    is_secret: bool
    secret: str = ""


def gitleaks(checkout: Path) -> Iterator[Case]:
    """The lines by which gitleaks checks its own rules."""
    directory = checkout / "cmd" / "generate" / "config"
    layouts = [_string(found) for found in _LAYOUT.findall((directory / "utils" / "generate.go").read_text("utf-8"))]
    for path in sorted((directory / "rules").glob("*.go")):
        for function in re.split(r"(?m)^func ", path.read_text("utf-8"))[1:]:
            if rule := re.search(r'RuleID:\s*"([^"]+)"', function):
                yield from _Function(layouts, Random(rule[1])).cases(rule[1], function)


def detect_secrets(checkout: Path) -> Iterator[Case]:
    """The lines by which detect-secrets checks its plugins for single services."""
    for path in sorted((checkout / "tests" / "plugins").glob("*_test.py")):
        if path.stem.removesuffix("_test") in _OTHER_PLUGINS:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Tuple(elts=[ast.Constant(value=str() as line), ast.Constant(value=bool() as is_secret)]) if line.strip():
                    yield Case(f"detect-secrets: {path.stem.removesuffix('_test')}", line, is_secret)


def prose(directory: Path) -> Iterator[str]:
    """All texts of the JSON lines below a directory."""
    for path in sorted(directory.rglob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            yield from _texts(json.loads(line))


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)


class _Function:
    """One rule's function: `tps` and `fps` hold the lines with and without a secret."""

    def __init__(self, layouts: Sequence[str], random: Random) -> None:
        self._layouts = layouts
        self._random = random
        self._known: dict[str, Any] = {}
        self._drawn: list[str] = []

    def cases(self, rule: str, text: str) -> Iterator[Case]:
        tokens = [token for token in _TOKEN.findall(text) if not token.startswith(("//", "/*"))]
        for place, token in enumerate(tokens):
            if tokens[place + 1 : place + 2] not in ([":="], ["="]) or not token.isidentifier():
                continue
            value, _ = _taken(tokens, place + 2)
            if token not in ("tps", "fps"):
                self._evaluated(value, into=token)
                continue
            for item in _items(value):
                self._drawn = []
                for line in self._lines(item):
                    yield Case(rule, line, token == "tps", max(self._drawn, key=len, default="") if token == "tps" else "")

    def _lines(self, item: list[str]) -> list[str]:
        value = self._evaluated(item)
        return value if isinstance(value, list) else [value] if value else []

    def _evaluated(self, tokens: list[str], into: str = "") -> Any:
        """The value of an expression; None if it calls what is not known here."""
        try:
            value, rest = self._sum(tokens)
        except (KeyError, IndexError, TypeError, ValueError):
            return None
        if rest:
            return None
        self._known[into] = value
        return value

    def _sum(self, tokens: list[str]) -> tuple[Any, list[str]]:
        value, rest = self._term(tokens)
        while rest[:1] == ["+"]:
            further, rest = self._term(rest[1:])
            value += further
        return value, rest

    def _term(self, tokens: list[str]) -> tuple[Any, list[str]]:
        first, rest = tokens[0], tokens[1:]
        if first[0] in '"`':
            return _string(first), rest
        if rest[:1] != ["("]:
            return self._known[first], rest
        inside, end = _taken(rest, 1)
        arguments = [self._evaluated(argument) for argument in _split(inside)]
        return self._called(first.rpartition(".")[2], arguments), rest[end + 1 :]

    def _called(self, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "NewSecret", [regex]:
                self._drawn.append(drawn(re.compile(regex), self._random))
                return self._drawn[-1]
            case "GenerateSampleSecret", [service, secret]:
                return f'{service}_api_token = "{secret}"'
            case "GenerateSampleSecrets", [service, secret]:
                self._drawn = [secret]
                return [layout.replace("{i}", service).replace("{I}", service.upper()).replace("{s}", secret) for layout in self._layouts]
            case "Sprintf", [form, *values]:
                return form.replace("%s", "{}").format(*values) if "{" not in form else _filled(form, values)
            case "Hex8_4_4_4_12", []:
                return _UUID
            case _, [size] if name in _SETS:
                return f"{_SETS[name]}{{{size}}}"
        raise KeyError(name)


def _filled(form: str, values: Sequence[str]) -> str:
    for value in values:
        form = form.replace("%s", value, 1)
    return form


def _string(token: str) -> str:
    return token[1:-1] if token[0] == "`" else str(json.loads(re.sub(r"\\x([0-9a-f]{2})", r"\\u00\1", token)))


def _taken(tokens: list[str], start: int) -> tuple[list[str], int]:
    """The tokens of an expression from `start` on, and where it ends: at a closing bracket, or where a next statement begins."""
    depth = 0
    for place in range(start, len(tokens)):
        token = tokens[place]
        if depth == 0 and place > start and (token in (")", "}") or _begins_statement(tokens, place)):
            return tokens[start:place], place
        depth += (token in ("(", "{", "[")) - (token in (")", "}", "]"))
    return tokens[start:], len(tokens)


def _begins_statement(tokens: list[str], place: int) -> bool:
    ends = tokens[place - 1] not in ("+", ",", "(", ".", "=", ":=")
    return ends and (tokens[place] == "return" or tokens[place + 1 : place + 2] in ([":="], ["="]))


def _items(tokens: list[str]) -> list[list[str]]:
    """The items of `[]string{…}` and `append(tps, …)`, or the expression itself."""
    if tokens[:3] == ["[", "]", "string"]:
        return _split(tokens[4:-1])
    if tokens[:2] == ["append", "("]:
        return _split(tokens[4:-1])
    return [tokens]


def _split(tokens: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in ("(", "{", "[")) - (token in (")", "}", "]"))
        if token == "," and depth == 0:
            parts.append([])
        elif token != "...":
            parts[-1].append(token)
    return [part for part in parts if part]
