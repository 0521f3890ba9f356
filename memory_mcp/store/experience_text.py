"""An experience as the text of a memory, and back: a task, when it fits, the steps, what was learned, and what to beware of.

    Migrate the user database
    When: the disk is full
    Strategy: sequential
    1. Copy the audit table last
    2. Compare counts three times

The first line is the task; further lines of a step or a field are indented. Japanese tasks have Japanese names of the fields; both are
read.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memory_mcp.characters import is_japanese
from memory_mcp.language.tokens import normalise

STRATEGIES = ("parallel", "sequential")
_NAMES = {
    "when": ("When", "使うとき"),
    "not_when": ("Not when", "使わないとき"),
    "strategy": ("Strategy", "進め方"),
    "lesson": ("Lesson", "学んだこと"),
    "sign": ("Sign", "兆候"),
    "instead": ("Instead", "代わりに"),
    "severity": ("Severity", "重大さ"),
}
_FIELD_OF = {normalise(name): field for field, names in _NAMES.items() for name in names}
_FIELD = re.compile(rf"({'|'.join(map(re.escape, _FIELD_OF))}) ?[:：]", re.IGNORECASE)
# As people write lists: Japanese ones have no blank after the mark.
_STEP = re.compile(r"(?:\d{1,3}[.)]|[-*+])\s+|(?:\d{1,3}[．、）]|[・①-⑳])\s*")
_STEPS = re.compile(r"(?:steps|手順) ?[:：]\s*", re.IGNORECASE)
_INDENT = "   "
_STRATEGY_OF = {"並列": "parallel", "並行": "parallel", "順番": "sequential", "順次": "sequential"}


@dataclass(frozen=True, slots=True)
class Experience:
    """What worked or failed for a task. It is a pitfall if it says by which `sign` something fails, or what to do `instead`; else its
    steps are a way to do the task. `severity` is from 1 to 5, 0 if unknown.
    """

    task: str
    when: str = ""
    not_when: str = ""
    strategy: str = ""
    steps: tuple[str, ...] = ()
    lesson: str = ""
    sign: str = ""
    instead: str = ""
    severity: int = 0

    @property
    def is_pitfall(self) -> bool:
        return bool(self.sign or self.instead)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What another report must have to count for the same experience."""
        steps = tuple(map(_plain, self.steps))
        return _plain(self.task), self.is_pitfall, (_plain(self.sign) or _plain(self.instead)) if self.is_pitfall else steps

    @property
    def matched_by(self) -> tuple[str, ...]:
        """The texts by which a task finds it."""
        return tuple(text for text in dict.fromkeys((self.task, self.when)) if text)

    def text(self) -> str:
        """The content of its memory."""
        language = 1 if is_japanese(self.task) else 0
        fields = {
            name: f"{names[language]}: {_indented(str(getattr(self, name)))}" for name, names in _NAMES.items() if getattr(self, name)
        }
        steps = [f"{number}. {_indented(step)}" for number, step in enumerate(self.steps, start=1)]
        before = [fields.pop(name) for name in ("when", "not_when", "strategy") if name in fields]
        return "\n".join([self.task, *before, *steps, *fields.values()])


def read(text: str) -> Experience:
    """The experience that a text says, whoever wrote it. Lines that belong to nothing else are what was learned."""
    first, *lines = text.strip("\n").split("\n")
    fields: dict[str, list[str]] = {}
    steps: list[list[str]] = []
    open_part: list[str] | None = None
    for line in lines:
        named, step = _FIELD.match(line), _STEP.match(line)
        if _STEPS.fullmatch(line):
            open_part = None
            continue
        if open_part is not None and (line.startswith(_INDENT) or not line.strip()):
            open_part.append(line.removeprefix(_INDENT).rstrip("\r"))
            continue
        if named:
            open_part = fields.setdefault(_FIELD_OF[normalise(named[1])], [])
        elif step:
            open_part = []
            steps.append(open_part)
        else:
            open_part = fields.setdefault("lesson", [])
        mark = named or step
        open_part.append((line[mark.end() :] if mark else line).lstrip())
    values = {name: "\n".join(part).strip() for name, part in fields.items()}
    severity, strategy = values.pop("severity", ""), values.pop("strategy", "")
    word = normalise(strategy).strip()
    is_number = severity.isdecimal() and 1 <= int(severity) <= 5
    if severity and not is_number:
        values["lesson"] = "\n".join(filter(None, [values.get("lesson"), f"{_NAMES['severity'][is_japanese(first)]}: {severity}"]))
    return Experience(
        " ".join(first.lstrip("#").split()),
        **values,
        strategy=word if word in STRATEGIES else _STRATEGY_OF.get(word[:2], strategy),
        steps=tuple(step for step in ("\n".join(part).strip() for part in steps) if step),
        severity=int(severity) if is_number else 0,
    )


def separate_steps(told: Iterable[str]) -> tuple[str, ...]:
    """The steps without the marks that they have as a list: `1. `, `- `, ・. A text all lines of which have one is several steps."""
    steps: list[str] = []
    for step in told:
        lines = [line.strip() for line in step.splitlines() if line.strip()]
        is_list = all(_STEP.match(line) for line in lines)
        steps += [_STEP.sub("", line, count=1) for line in lines] if is_list else [step.strip()]
    return tuple(step for step in steps if step)


def _indented(text: str) -> str:
    return text.strip().replace("\r\n", "\n").replace("\n", f"\n{_INDENT}")


def _plain(text: str) -> str:
    return "".join(normalise(text).split()).rstrip(".。!！")
