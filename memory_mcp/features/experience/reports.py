"""Records how a task went, and whether what was shown helped: used experiences are counted, new ones become memories. Those that only resemble it are named, and never merged by themselves.

A report is one commit: a kill leaves no experience without its outcome. A retry with the same run id changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Draft, Feedback, Outcome, Showing, Verdict
from memory_mcp.features.experience.matches import Match, word_similarity
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.remember.validation import checked_content
from memory_mcp.store import feedback, memories
from memory_mcp.store.experience_text import Experience, read
from memory_mcp.store.timestamps import to_text

NEAR_SHOWN = 3
# Two tasks in nearly the same words are the same task.
SAME_TASK = 0.9


@dataclass(frozen=True, slots=True)
class Report:
    """How a task went. `used` are the keys of the experiences that were followed, of those that the caller was shown."""

    experience: Experience
    outcome: Verdict
    run: str = ""
    used: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reported:
    """What a report made and counted (key → verdicts), and the experiences near it."""

    made: tuple[str, ...] = ()
    counted: Mapping[str, Sequence[Verdict]] = field(default_factory=dict)
    near: tuple[Match, ...] = ()
    repeated: bool = False
    note: str = ""


def report(
    persona: Persona, report: Report, compared: Sequence[Match], caller: str, *, now: datetime, zone: ZoneInfo, privacy: Privacy
) -> Reported:
    """Count a report and store what is new in it. `compared`: the experiences compared with its task, the most similar first.

    Raises:
        InvalidInput: it can't be stored.
        StoreError: it could not be stored.
    """
    report = replace(report, run=Redaction(privacy).text(report.run))
    try:
        return _counted(persona, report, compared, caller, now=now, zone=zone, privacy=privacy)
    except _Repeated as repeated:
        return Reported(counted=repeated.counted, repeated=True)


class _Repeated(Exception):
    """The run was counted before."""

    def __init__(self, counted: Mapping[str, Sequence[Verdict]]) -> None:
        super().__init__()
        self.counted = counted


def _check_new(connection: apsw.Connection, run: str, caller: str) -> None:
    if run and (counted := feedback.of_run(connection, run, caller)):
        raise _Repeated(counted)


def _counted(
    persona: Persona, report: Report, compared: Sequence[Match], caller: str, *, now: datetime, zone: ZoneInfo, privacy: Privacy
) -> Reported:
    known = {match.experience.identity: match for match in compared}
    new: list[tuple[Draft, Verdict]] = []
    verdicts: dict[str, list[Verdict]] = {}
    notes: list[str] = []
    with persona.database.read_briefly() as connection:
        _check_new(connection, report.run, caller)
        by_key = memories.by_keys(connection, report.used)
    used = [key for key in report.used if key in by_key]
    for part, verdict in _parts(report, has_used=bool(used)):
        if same := known.get(read(Redaction(privacy).text(part.text())).identity):  # as it is stored
            key = same.memory.key
            notes += [f"{key} says it already; revise adds what is new in it"] if _is_more(part, same.experience) else []
            verdicts.setdefault(key, []).append(verdict)
        else:
            new.append((Draft(checked_content(part.text()), kind="experience", questions=part.matched_by), verdict))
    for key in used:
        # If it failed although a pitfall was heeded, the pitfall gets no verdict.
        is_tried = by_key[key].kind == "experience" and not (report.outcome == "failed" and read(by_key[key].content).is_pitfall)
        verdicts[key] = ["used", *verdicts.get(key, [report.outcome] if is_tried else [])]
    for key in _contradicted(report, compared, used):
        verdicts.setdefault(key, []).append("contradicted")

    def count(connection: apsw.Connection, stored: Sequence[Outcome]) -> None:
        _check_new(connection, report.run, caller)  # another one with this run may have come in between
        for outcome, (_, verdict) in zip(stored, new, strict=True):
            verdicts.setdefault(outcome.key, []).append(verdict)
        for key, memory in memories.by_keys(connection, list(verdicts)).items():
            feedback.add(connection, memory.id, [Feedback(verdict, now, report.run) for verdict in dict.fromkeys(verdicts[key])], caller)

    stored = remember_many(persona, [draft for draft, _ in new], now=now, zone=zone, privacy=privacy, then=count)
    made = tuple(outcome.key for outcome in stored if outcome.outcome == "stored")
    # Where nothing is new, there is nothing to decide.
    near = tuple(match for match in compared if made and match.is_sure and match.memory.key not in verdicts)[:NEAR_SHOWN]
    return Reported(made, verdicts, near, note="; ".join(notes))


def _parts(report: Report, *, has_used: bool) -> list[tuple[Experience, Verdict]]:
    """The experiences in a report: a way to do the task, and a pitfall. A report that only used known ones has none."""
    stated = report.experience
    pitfall = replace(stated, not_when="", strategy="", steps=stated.steps if report.outcome == "failed" else ())
    if stated.is_pitfall and report.outcome == "failed":
        return [(pitfall, "failed")]
    way = replace(stated, sign="", instead="", severity=0)
    has_way = bool(way.steps or way.strategy or way.when or way.not_when or (way.lesson and not stated.is_pitfall))
    parts: list[tuple[Experience, Verdict]] = [(way, report.outcome)] if has_way or not (has_used or stated.is_pitfall) else []
    return [*parts, (replace(pitfall, lesson="" if parts else stated.lesson), "failed")] if stated.is_pitfall else parts


def _contradicted(report: Report, compared: Sequence[Match], used: Sequence[str]) -> list[str]:
    """The pitfalls of the same task that a success contradicts: their steps have worked now, or they name neither steps nor an alternative."""
    if report.outcome != "worked":
        return []
    return [
        match.memory.key
        for match in compared
        if match.experience.is_pitfall
        and match.memory.key not in used
        and word_similarity(match.experience.task, report.experience.task) >= SAME_TASK
        and (not match.experience.instead if not match.experience.steps else match.experience.steps == report.experience.steps)
        and not report.experience.is_pitfall
    ]


def _is_more(part: Experience, known: Experience) -> bool:
    """Whether a report adds anything to the known experience."""
    return any(
        getattr(part, name) and getattr(part, name) != getattr(known, name)
        for name in ("when", "not_when", "strategy", "lesson", "instead", "severity")
    )


def judge(
    persona: Persona, keys: Sequence[str], verdict: Verdict, shown: Mapping[str, Showing], caller: str, *, now: datetime, privacy: Privacy
) -> list[Outcome]:
    """Store a judgement of each of these memories: `judged`, `not_shown` or `not_found`. Another one on the same answer replaces it."""

    def store(connection: apsw.Connection) -> list[Outcome]:
        known = memories.by_keys(connection, keys)
        for key, memory in known.items():
            if key in shown:
                query = Redaction(privacy).text(shown[key].query)
                feedback.add(connection, memory.id, [Feedback(verdict, now, to_text(shown[key].at), query)], caller)
        return [_judged(key, key in known, key in shown) for key in keys]

    return persona.database.write(store)


def _judged(key: str, is_known: bool, is_shown: bool) -> Outcome:
    if not is_known:
        return Outcome(key, "not_found")
    return Outcome(key, "judged") if is_shown else Outcome(key, "not_shown", "you were not shown it lately: recall it first")
