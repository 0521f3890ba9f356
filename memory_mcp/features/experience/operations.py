"""What worked and what failed: the tools advise, report and judge, how recall does, and weights fitted to one's own judgements."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.domain import JUDGEMENTS, OUTCOMES, Showing, Verdict
from memory_mcp.errors import InvalidInput, Overloaded, StoreError
from memory_mcp.features.experience.advice import advice, near_view
from memory_mcp.features.experience.matches import Match, Matches, matches, of_pool
from memory_mcp.features.experience.reports import Report
from memory_mcp.features.experience.reports import judge as judge_memories
from memory_mcp.features.experience.reports import report as count_report
from memory_mcp.features.experience.weights import fit
from memory_mcp.language.labels import few, label, storable
from memory_mcp.language.names import normalized_length
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.names import key_in, pool_of
from memory_mcp.personas.registry import Persona
from memory_mcp.search.question import QUERY_LIMIT
from memory_mcp.search.stores import Pools
from memory_mcp.server.actions.organize import brief
from memory_mcp.server.arguments import Arguments, Between, Flag, OneOf, Text, TextList, WholeNumber, Words, http, require_keys
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, Tool, operation
from memory_mcp.server.sessions import is_dashboard
from memory_mcp.server.views import Count, Fraction, PersonaAnswer, ReadingAnswer, heading, model_used, omit_empty
from memory_mcp.store import feedback, memories, memory_pages
from memory_mcp.store.experience_text import STRATEGIES, Experience, separate_steps
from memory_mcp.store.feedback import own_weights, set_own_weights

logger = logging.getLogger(__name__)

# The showings from which on a memory that was never used is listed; the length of each list; the days by default and at most.
OFTEN, LISTED, DAYS, DAYS_LIMIT = 5, 10, 30, 366


class AdviseArguments(Arguments):
    task: Annotated[Words, Field(description="what you are about to do, in your own words"), http("The task.", minLength=1)]
    limit: Annotated[int, Between(1, 10), Field(description="1..10 of each kind"), http("How many of each kind.")] = 3


# Written so because of the word `try`.
Advice = TypedDict("Advice", {"try": list[dict[str, Any]]})


class Advised(ReadingAnswer, Advice):
    unknown: bool
    beware: list[dict[str, Any]]
    near: NotRequired[list[dict[str, Any]]]
    degraded: NotRequired[list[str]]
    embedder: NotRequired[str]
    remedy: NotRequired[str]
    more: NotRequired[Count]


@operation(
    needs=["read"],
    tool=Tool("advise", "Advise", read_only=True, idempotent=True),
    route=Route("GET", "/api/advise", "What worked and what failed for a task like this one."),
    answer=Advised,
)
def advise(call: Call, arguments: AdviseArguments) -> Json:
    """What worked and what failed for such a task before. Call before you start one with several steps; report afterwards. `near`: other
    tasks; if one is yours, advise by its title.
    """
    task = _task(call, arguments.task)
    with call.reading() as persona, call.reading_pools() as pools:
        matched = _matches(call, persona, task)
        shared, unavailable = _in_pools(call, pools, task)
        advised = advice([*matched.all, *shared], settings=call.settings, now=call.now, limit=arguments.limit)
        own = {match.memory.key for match in matched.all}
        call.note_use(persona, [key for key in advised.keys if key in own], task)
        return {
            **heading(call, persona),
            "unknown": not (advised.to_try or advised.beware or advised.left_out),
            "try": list(advised.to_try),
            "beware": list(advised.beware),
            **omit_empty(
                near=list(advised.near),
                degraded=[*filter(None, [matched.replaced and matched.replaced.reason, matched.skipped]), *unavailable],
                more=advised.left_out or None,
            ),
            **model_used(matched.replaced.name if matched.replaced else None, [matched.skipped or ""], call),
        }


class ReportArguments(Arguments):
    task: Annotated[Words, http("The task, as advise gets it.", minLength=1)]
    outcome: Annotated[Text, OneOf(OUTCOMES), Field(description="worked, failed or partly")]
    run: Annotated[Text, Field(description="any id; a retry with it counts once")] = ""
    used: Annotated[TextList, Field(description="keys of advice that you followed")] = []
    steps: Annotated[TextList, Field(description="what you did, one step each")] = []
    strategy: Annotated[Text, OneOf(STRATEGIES), Field(description="parallel or sequential")] = ""
    when: Annotated[Text, Field(description="when it fits")] = ""
    not_when: Text = ""
    lesson: Annotated[Text, Field(description="what you learned, or what happened")] = ""
    sign: Annotated[Text, Field(description="by what to notice the failure")] = ""
    instead: Annotated[Text, Field(description="what to do instead")] = ""
    severity: Annotated[WholeNumber, Field(description="1..5")] = None
    pool: Annotated[Text, Field(description="share it in this pool")] = ""


class Reported(PersonaAnswer):
    made: list[str]
    counted: dict[str, list[Verdict]]
    near: list[dict[str, Any]]
    not_counted: NotRequired[dict[str, str]]
    repeated: NotRequired[Literal[True]]
    note: NotRequired[str]


@operation(
    needs=["read", "write"],
    tool=Tool("report", "Report how a task went"),
    route=Route("POST", "/api/report", "Say how a task went; the next advice knows it."),
    answer=Reported,
)
def report(call: Call, arguments: ReportArguments) -> Json:
    """Say how a task went, also that it failed: steps that worked, or sign and instead of a pitfall. The next advise knows it."""
    experience = _experience(call, arguments)
    store = call.within(arguments.pool.strip()) if arguments.pool.strip() else call
    with store.writing() as persona:
        keys = {store.locate(key)[1] if store.pool else key: key for key in arguments.used}
        shown = keys if store.pool else call.shown(persona, arguments.used)  # who writes to a pool is believed
        used = tuple(key for key in keys if key in shown)
        matched = _matches(call, persona, experience.task)
        counted = count_report(
            persona,
            Report(experience, _verdict(arguments.outcome), label(arguments.run, "run") or "", used),
            matched.all,
            call.reader,
            now=call.now,
            zone=call.settings.zone,
            privacy=call.settings.privacy,
        )
    not_counted = {key: _why_not(store, key) for bare, key in keys.items() if bare not in used}
    pool = store.foreign_pool
    return {
        **(heading(store, persona) if pool else {"persona": persona.name}),
        "made": [_seen(key, pool) for key in counted.made],
        "counted": {_seen(key, pool): list(verdicts) for key, verdicts in counted.counted.items()},
        "near": [{**near_view(match), "key": _seen(match.memory.key, pool)} for match in counted.near],
        **omit_empty(
            not_counted=not_counted,
            repeated=counted.repeated or None,
            note="; ".join(filter(None, [_seen_in(counted.note, counted.counted, pool), _NEAR_NOTE if counted.near else ""])),
        ),
    }


def _why_not(call: Call, key: str) -> str:
    """Why a key that was used doesn't count."""
    pools = {} if call.pool else call.pools()
    pool = next((pool for pool in pools if key.endswith(f"@{pool}")), "")
    if not pool:
        return "you were not shown it lately"
    return f"it is of a pool: a report with pool {pool!r} counts there" if pools[pool] else "it is of a pool to which you don't write"


_NEAR_NOTE = "those near may be the same: organize merges them if they are"


class JudgeArguments(Arguments):
    keys: Annotated[TextList, Field(description="of memories that you were shown")]
    verdict: Annotated[Text, OneOf(JUDGEMENTS), Field(description="helped, hurt or stale")]


class JudgedOutcome(TypedDict):
    key: str
    outcome: Literal["judged", "not_shown", "not_found"]
    reason: NotRequired[str]


class Judged(ReadingAnswer):
    outcomes: list[JudgedOutcome]


@operation(
    needs=["read", "write"],
    tool=Tool("judge", "Judge memories", idempotent=True),
    route=Route("POST", "/api/judge", "Say whether memories that were shown helped."),
    answer=Judged,
)
def judge(call: Call, arguments: JudgeArguments) -> Json:
    """Say whether memories that you were shown helped, misled (hurt), or no longer hold (stale). What hurts sinks in later answers."""
    require_keys(arguments.keys, "judge")
    keys = (storable(key, "keys").strip() for key in dict.fromkeys(arguments.keys))
    verdict = _verdict(arguments.verdict)
    answers = [_judged_in(store, of_store, verdict) for store, of_store in call.group_by_store(keys)]
    return {**answers[0], "outcomes": [outcome for answer in answers for outcome in answer["outcomes"]]}


def _judged_in(call: Call, keys: Sequence[str], verdict: Verdict) -> Json:
    """Judge memories of one store. Those who write to a pool may judge any of its memories: what its readers are shown is not recorded."""
    with call.changing() as persona:
        head = heading(call, persona)
        if not persona.exists:
            return {**head, "outcomes": [{"key": _seen(key, call.foreign_pool), "outcome": "not_found"} for key in keys]}
        is_believed = bool(call.pool) or is_dashboard(call.scope["path"])
        shown = (dict.fromkeys(keys, _ON_PAGE) if is_believed else {}) | call.shown(persona, keys)
        outcomes = judge_memories(persona, keys, verdict, shown, call.reader, now=call.now, privacy=call.settings.privacy)
        return {
            **head,
            "outcomes": [
                {"key": _seen(outcome.key, call.foreign_pool), "outcome": outcome.outcome, **omit_empty(reason=outcome.reason)}
                for outcome in outcomes
            ],
        }


# A memory on a page of the dashboard counts as one showing: a caller has one judgement of it.
_ON_PAGE = Showing(datetime.fromtimestamp(0, UTC))


class FiguresArguments(Arguments):
    days: Annotated[int, Between(1, DAYS_LIMIT), http("How many days on which somebody searched.")] = DAYS
    limit: Annotated[int, Between(1, 50), http("How many memories of each list.")] = LISTED


class SearchDay(TypedDict):
    day: Annotated[str, Field(json_schema_extra={"format": "date"})]
    asked: Count
    answered: Count


class DayOfGrowth(TypedDict):
    day: Annotated[str, Field(json_schema_extra={"format": "date"})]
    stored: Count


class RecallFigures(ReadingAnswer):
    """`success`: the share of the searches that found something. `precision`: the share of the judgements that say it helped."""

    searches: list[SearchDay]
    success: NotRequired[Fraction]
    verdicts: dict[str, Count]
    precision: NotRequired[Fraction]
    memories: Count
    shown: Count
    growth: list[DayOfGrowth]
    unused: Count
    never_shown: list[dict[str, Any]]
    shown_and_unused: list[dict[str, Any]]
    hurt: list[dict[str, Any]]
    weights: NotRequired[dict[str, float]]


@operation(needs=["read"], route=Route("GET", "/api/recall/figures"), answer=RecallFigures)
def recall_figures(call: Call, arguments: FiguresArguments) -> Json:
    """Return how recall does: how often it finds something, what is never shown, what is shown and never used, and what hurt."""
    with call.reading() as persona, _counted(call, persona).database.read() as connection:
        overview = feedback.overview(connection, arguments.days, OFTEN)
        lists = {which: feedback.listed(connection, which, arguments.limit, OFTEN) for which in ("never_shown", "shown_and_unused", "hurt")}
        known = memories.beginnings(connection, {memory_id for ids in lists.values() for memory_id in ids})
        own = dict(own_weights(persona.database))
        stored = memory_pages.stored_since(connection, call.now - timedelta(days=arguments.days))
    grown = Counter[str]()
    for moment, count in stored:
        grown[moment.astimezone(call.settings.zone).date().isoformat()] += count
    asked, answered = sum(day[1] for day in overview.searches), sum(day[2] for day in overview.searches)
    against = overview.verdicts.get("hurt", 0) + overview.verdicts.get("stale", 0)
    judged = overview.verdicts.get("helped", 0) + against
    return {
        **heading(call, persona),
        "searches": [{"day": day, "asked": all_, "answered": with_hits} for day, all_, with_hits in overview.searches],
        **omit_empty(success=_share(answered, asked), precision=_share(judged - against, judged), weights=own),
        "verdicts": dict(overview.verdicts),
        "memories": overview.memories,
        "shown": overview.shown,
        "growth": [{"day": day, "stored": count} for day, count in sorted(grown.items())],
        "unused": overview.unused,
        **{which: [brief(known[id_], call) for id_ in ids if id_ in known] for which, ids in lists.items()},
    }


class WeightsArguments(Arguments):
    apply: Annotated[Flag, http("Use them from now on, if they are better.")] = False
    reset: Annotated[Flag, http("Use the weights of config.json again.")] = False


class FittedWeights(ReadingAnswer):
    """`held_out`: how well the judged queries that had no say in the choice are answered, from 0 to 1, before and after. `own`: the
    persona's own weights, where it has any.
    """

    own: NotRequired[dict[str, float]]
    weights: dict[str, float]
    queries: NotRequired[Count]
    fitted: NotRequired[list[Fraction]]
    held_out: NotRequired[list[Fraction]]
    better: NotRequired[bool]
    applied: bool


@operation(needs=["read", "write", "admin"], route=Route("POST", "/api/recall/weights", body_required=True), answer=FittedWeights)
def fit_weights(call: Call, arguments: WeightsArguments) -> Json:
    """Fit the weights of the fusion to a persona's own judgements. They are shown, and applied only on request and if the other half
    confirms them.
    """
    if arguments.apply and arguments.reset:
        raise InvalidInput("apply and reset are both true", "one uses weights, the other takes them back", "Send one of them")
    with call.changing() as persona:
        head = heading(call, persona)
        if arguments.reset:
            if persona.exists:
                persona.database.write(lambda connection: set_own_weights(connection, {}))
            return {**head, "weights": {}, "applied": False}
        own = own_weights(persona.database) if persona.exists else {}
        fitted = fit(persona, models=call.models, settings=call.search_settings(persona), indexes=call.runtime.indexes, now=call.now)
        applied = arguments.apply and fitted.is_better
        if applied:
            own = {**own, **fitted.weights}
            persona.database.write(lambda connection: set_own_weights(connection, own))
        return {**head, **omit_empty(own=dict(own)), **asdict(fitted), "better": fitted.is_better, "applied": applied}


def _counted(call: Call, persona: Persona) -> Persona:
    """The persona, after its latest counts are written. Where nothing can be written, these are missing."""
    if call.runtime.usage and not call.pool:
        with suppress(StoreError, Overloaded):
            call.runtime.usage.step(persona, call.now, call.settings)
    return persona


def _matches(call: Call, persona: Persona, task: str) -> Matches:
    return matches(persona, task, models=call.models, settings=call.settings, indexes=call.runtime.indexes)


def _in_pools(call: Call, pools: Pools, task: str) -> tuple[list[Match], list[str]]:
    """The experiences of the pools, and the notes for the answer on pools that can't be read, including those that fail only here."""
    compared: list[Match] = []
    unavailable = list(pools.unavailable)
    for store in pools.stores:
        try:
            compared += [of_pool(match, store.name) for match in _matches(call, store, task).all]
        except StoreError as error:
            logger.warning("%s is left out of an advice: %s", store.name, error)
            unavailable.append(pool_of(store.name))
    return compared, replace(pools, unavailable=tuple(unavailable)).degraded


def _seen(key: str, pool: str) -> str:
    return key_in(pool, key) if pool else key


def _seen_in(note: str, keys: Iterable[str], pool: str) -> str:
    for key in keys:
        note = note.replace(key, _seen(key, pool))
    return note


def _task(call: Call, text: str) -> str:
    task = " ".join(Redaction(call.settings.privacy).text(storable(text, "task")).split())
    if not task:
        raise InvalidInput("task is empty", "there is nothing to advise on", "Say in a sentence what is to be done")
    if (length := normalized_length(task)) > QUERY_LIMIT:
        raise InvalidInput("task has {} characters", "{} are the limit", "Say it in a sentence or two", f"{length:,}", f"{QUERY_LIMIT:,}")
    return task


def _experience(call: Call, arguments: ReportArguments) -> Experience:
    severity = arguments.severity or 0
    if arguments.severity is not None and not 1 <= severity <= 5:
        raise InvalidInput("severity is {}", "it runs from 1 to 5", "Send 5 for what must never happen again, or leave it out", severity)
    few(arguments.used, "used")
    texts = {
        name: storable(getattr(arguments, name), name).strip() for name in ("when", "not_when", "strategy", "lesson", "sign", "instead")
    }
    steps = separate_steps(storable(step, "steps") for step in few(arguments.steps, "steps"))
    return Experience(_task(call, arguments.task), **texts, steps=steps, severity=severity)


def _verdict(word: str) -> Verdict:
    return next(verdict for verdict in (*OUTCOMES, *JUDGEMENTS) if verdict == word)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None
