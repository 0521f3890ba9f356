"""Finds every regular expression of the package, and those that take more than twice the time for a text of twice the length.

A program of its own, because an expression that tries everything in every way holds the interpreter: whoever runs it can end it.

    python tests/support/pattern_scan.py [--thorough] [PART OF A PLACE]    prints one JSON object
"""

import ast
import builtins
import importlib
import json
import pkgutil
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from regex_pumps import Pumped, pumps

SHORT, LONGEST, SAMPLED_PUMPS = 3_000, 200_000, 5
# What takes less is not looked at; what takes less on the longest text is not judged; a run that takes more is ended.
UNNOTICED_SECONDS, JUDGED_SECONDS, LIMIT_SECONDS = 0.0003, 0.05, 0.5
# A text is held against one of a quarter of its length: what is linear takes four times as long, what tries each beginning anew sixteen times.
SHORTER, SUSPECT_GROWTH, GROWTH = 4, 6.0, 9.0
# Whatever else the machine does only adds to a time, so the least of some runs is the one that counts.
TRIED, REPEATED = 3, 7
# The processor's clock may count hundredths of a second.
CLOCK_SECONDS = 0.02
WAYS = ("fullmatch", "finditer")
# Where in the arguments of a function of `re` the flags are.
_FLAGS_AT = {"compile": 1, "search": 2, "match": 2, "fullmatch": 2, "findall": 2, "finditer": 2, "split": 3, "sub": 4, "subn": 4}
# Functions that compile what they are given.
_COMPILERS = frozenset({"re", "memory_mcp.patterns", "memory_mcp.lexicon"})

Patterns = dict[re.Pattern[Any], str]


@dataclass
class Scan:
    """How many expressions and runs there were, and what was slow."""

    patterns: int = 0
    pumps: int = 0
    slow: list[dict[str, Any]] = field(default_factory=list)


class Late(Exception):
    """A run took `LIMIT_SECONDS`."""


def found() -> Patterns:
    """Every expression of the package, and where it is."""
    patterns: Patterns = {}
    modules = list(_imported(patterns))
    for module in modules:
        for pattern, line in _in_functions(module):
            patterns.setdefault(pattern, f"{module.__name__}:{line}")
    return patterns | _in_tables()


def _imported(patterns: Patterns) -> Iterator[ModuleType]:
    """Imports every module, and notes what is compiled meanwhile, wherever it is kept."""
    compiled = re._compile

    def noted(pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        result: re.Pattern[Any] = compiled(pattern, flags)
        frame = sys._getframe(1)
        while frame.f_back and frame.f_globals.get("__name__") in _COMPILERS:
            frame = frame.f_back
        if (name := str(frame.f_globals.get("__name__"))).startswith("memory_mcp"):
            patterns.setdefault(result, f"{name}:{frame.f_lineno}")
        return result

    re._compile = noted
    try:
        package = importlib.import_module("memory_mcp")
        for module in pkgutil.walk_packages(package.__path__, "memory_mcp."):
            if not module.name.endswith("__main__"):
                yield importlib.import_module(module.name)
    finally:
        re._compile = compiled


class _Names(dict[str, Any]):
    """The names of a module; a local one of a function is some word."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        return getattr(self._module, name, getattr(builtins, name, "ab"))


def _in_functions(module: ModuleType) -> Iterator[tuple[re.Pattern[Any], int]]:
    """What functions compile when they are called, `re.sub(r"\\s+", …)`, with some word for what only the call knows."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)) if name in _FLAGS_AT:
                at = _FLAGS_AT[name]
                given = node.args[at] if len(node.args) > at else next((word.value for word in node.keywords if word.arg == "flags"), None)
                try:
                    pattern, flags = _evaluated(node.args[0], module), _evaluated(given, module) if given else 0
                except (AttributeError, TypeError):  # of an object that only the call has
                    continue
                yield re.compile(pattern, flags if isinstance(flags, int) else 0), node.lineno


def _evaluated(expression: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(expression), str(module.__file__), "eval"), {}, _Names(module))  # noqa: S307


def _in_tables() -> Patterns:
    """What is compiled when it is needed: the rules for keys of services, and what the names of models are compared with."""
    service_keys = importlib.import_module("memory_mcp.language.privacy.secrets")
    families = importlib.import_module("memory_mcp.encoders.model_families")
    rules = {rule for some in (service_keys._rules().everywhere, *service_keys._rules().of_keyword) for rule in some}
    named = {rule.pattern: f"rule {rule.name}" for rule in rules}
    named |= {example: f"example of rule {rule.name}" for rule in rules for example in rule._examples}
    tables = (*families._PREFIXES, *families._LANGUAGES)
    return named | {re.compile(rf"\A(?:{pattern})"): "memory_mcp.encoders.model_families" for pattern, _ in tables}


def scan(patterns: Patterns, *, thorough: bool) -> Scan:
    """Tries every pump on its expression."""
    result = Scan(len(patterns))
    for pattern, place in patterns.items():
        tried = pumps(pattern)
        tried = tried if thorough else tried[:: len(tried) // SAMPLED_PUMPS + 1]
        result.pumps += len(tried)
        slow = next((growth for pumped in tried for way in WAYS if (growth := grows(pattern, pumped, way))), None)
        if slow:
            result.slow.append({"place": place, "pattern": str(pattern.pattern), **slow})
    return result


def grows(pattern: re.Pattern[Any], pumped: Pumped, way: str) -> dict[str, Any] | None:
    """How long a text takes and one of a quarter of its length, if that is out of proportion; else None."""

    def least(length: int, runs: int) -> float:
        text, fastest = pumped.text(length), LIMIT_SECONDS
        for _ in range(runs):
            fastest = min(fastest, taken := seconds(pattern, text, way))
            if taken >= LIMIT_SECONDS:
                break
        return fastest

    length = SHORT
    if (taken := least(length, TRIED)) < UNNOTICED_SECONDS or taken < SUSPECT_GROWTH * least(length // SHORTER, REPEATED) < LIMIT_SECONDS:
        return None
    while taken < JUDGED_SECONDS and length < LONGEST:
        length *= 2
        taken = least(length, 1)
    taken, shorter = least(length, TRIED), least(length // SHORTER, REPEATED)
    if taken < JUDGED_SECONDS or (taken < GROWTH * shorter and shorter < LIMIT_SECONDS):
        return None
    return {"way": way, "pumped": pumped._asdict(), "length": length, "seconds": taken, "seconds_of_a_quarter": shorter}


def seconds(pattern: re.Pattern[Any], text: str, way: str) -> float:
    """The time of one run, at most `LIMIT_SECONDS`. The processor's, where that is long enough for its clock, so that what else runs doesn't count."""
    given: Any = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
    began, began_working = time.perf_counter(), time.process_time()
    try:
        if way == "finditer":
            deque(pattern.finditer(given), maxlen=0)
        else:
            pattern.fullmatch(given)
    except Late:
        return LIMIT_SECONDS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    passed = time.perf_counter() - began
    return passed if passed < CLOCK_SECONDS else time.process_time() - began_working


@contextmanager
def watching_the_clock() -> Iterator[None]:
    """In the block, of the main thread, a run is ended after `LIMIT_SECONDS`."""

    def late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGVTALRM, late)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)


if __name__ == "__main__":
    parts = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    wanted = {pattern: place for pattern, place in found().items() if not parts or any(part in place for part in parts)}
    with watching_the_clock():
        print(json.dumps(asdict(scan(wanted, thorough="--thorough" in sys.argv)), ensure_ascii=False))
