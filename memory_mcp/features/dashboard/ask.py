"""The room of questions: what a search finds and why, also under other settings, and the context that a model gets first."""

from collections.abc import Mapping
from typing import Any

import pydantic
from starlette.responses import Response

from memory_mcp.config.reading import put
from memory_mcp.config.settings import Settings, value_of
from memory_mcp.domain import MODES
from memory_mcp.errors import InvalidInput
from memory_mcp.features.dashboard.configuration import as_written, by_default
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.features.dashboard.people import relation_names, stated
from memory_mcp.server.actions import configuration
from memory_mcp.server.actions.context import DEFAULT_TOKENS, get_context
from memory_mcp.server.actions.memories import recall
from memory_mcp.server.answer_text import answer_text, tokens_of
from memory_mcp.server.errors import argument_problems
from memory_mcp.server.operation import Json

# Hits beyond the page, to show what just missed it.
BEYOND = 5
SHOWN_LIMIT = 45
ANSWER_TOKENS = 20_000
# What may be tried: the keys of config.json that order hits or leave some out.
TRIED = (
    *("fusion.dense_weight", "fusion.session_weight", "fusion.graph_weight", "fusion.graph_weight_dense", "fusion.date_boost"),
    *("fusion.speaker_boost", "fusion.assistant_weight", "fusion.judged_weight", "fusion.rerank_weight", "decay.weight", "min_score"),
)


def question(visit: Visit) -> Response:
    """Show what a question finds and why, and the same under other settings if some were chosen."""
    visit.admission.require(recall.needs, "a question")
    with visit.call.reading() as persona:
        settings = visit.call.search_settings(persona)
    in_force = {key: as_written(value_of(settings, key)) for key in TRIED}
    wanted = {key: visit.field(key) or in_force[key] for key in TRIED}
    shown = visit.field("top_k") or str(settings.reranker_top_n)
    answers, error = [], None
    try:
        if visit.field("q"):
            answers.append(("in_force", _asked(visit, shown)))
        if visit.field("q") and wanted != in_force:
            answers.append(("tried", _asked(visit.trying(_with(settings, _changed(in_force, wanted))), shown)))
    except InvalidInput as refused:
        error = visit.refused(refused)
    return visit.page(
        "ask.html",
        400 if error else 200,
        q=visit.field("q"),
        mode=visit.field("mode") or "auto",
        modes=MODES,
        top_k=shown,
        in_force=in_force,
        wanted=wanted,
        changed=_changed(in_force, wanted),
        answers=answers,
        saved=[key for key in visit.fields.get("saved", []) if key in TRIED],
        may_save=visit.may(*configuration.change.needs) and visit.admission.personas is None,
        error=error,
    )


def save(visit: Visit) -> Response:
    """Write the values that were tried into config.json, and ask again."""
    shown = visit.perform(configuration.show)
    values = {key: _number(key, visit.field(key)) for key in TRIED if visit.field(key)}
    visit.perform(configuration.change, **by_default(shown, values))
    return visit.redirect("/ask", q=visit.field("q"), mode=visit.field("mode"), top_k=visit.field("top_k"), saved=list(values))


def _asked(visit: Visit, shown: str) -> Json:
    """The answer with as many hits as are wanted, and with those that come next."""
    limit = int(shown) if shown.isascii() and shown.isdecimal() else 0
    if not 1 <= limit <= SHOWN_LIMIT:
        raise InvalidInput("top_k is {}", "it runs from 1 to {} here", "Leave it out for the default", repr(shown[:20]), SHOWN_LIMIT)
    sent = {"query": visit.field("q"), "mode": visit.field("mode"), "top_k": limit + BEYOND, "max_tokens": ANSWER_TOKENS, "detail": "why"}
    answer = visit.perform(recall, **sent)
    if "relations" in answer:
        names = relation_names(visit, {})
        answer = {**answer, "relations": [stated(relation, names) for relation in answer["relations"]]}
    return {**answer, "shown": answer["hits"][:limit], "missed": answer["hits"][limit:]}


def seen(visit: Visit) -> Response:
    """Show the answer to a question as a model gets it, and its number of tokens."""
    text = answer_text(visit.as_model().perform(recall, query=visit.field("q"), mode=visit.field("mode")))
    return visit.page("seen.html", q=visit.field("q"), text=text, tokens=tokens_of(text))


def _changed(in_force: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if value != in_force[key]}


def _with(settings: Settings, changed: Mapping[str, str]) -> Settings:
    """The settings with other values.

    Raises:
        InvalidInput: a value is out of range.
    """
    tree: dict[str, Any] = settings.model_dump()
    for key, value in changed.items():
        put(tree, tuple(key.split(".")), _number(key, value))
    try:
        return Settings.model_validate(tree)
    except pydantic.ValidationError as error:
        raise InvalidInput("{}", "", "", "; ".join(argument_problems(error, TRIED))) from error


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput("{} is {}", "it is a number", "Leave it empty for the one in force", key, repr(text[:20])) from None


def figures(visit: Visit) -> Response:
    """Show how recall does: what is found, what is never shown or used, and what hurt."""
    recalled = visit.perform("recall_figures")
    return visit.page(
        "figures.html",
        found=recalled,
        searches=[(day["day"], day["asked"]) for day in recalled["searches"]],
        growth=[(day["day"], day["stored"]) for day in recalled["growth"]],
        lists=("never_shown", "shown_and_unused", "hurt"),
    )


def context(visit: Visit) -> Response:
    """Show the context that a model gets at the beginning of a conversation, verbatim, and its number of tokens."""
    budget, text, error = visit.field("max_tokens") or str(DEFAULT_TOKENS), "", None
    try:
        text = answer_text(visit.as_model().perform(get_context, query=visit.field("q"), max_tokens=budget))
    except InvalidInput as refused:
        error = visit.refused(refused)
    return visit.page(
        "context.html", 400 if error else 200, q=visit.field("q"), max_tokens=budget, text=text, tokens=tokens_of(text), error=error
    )
