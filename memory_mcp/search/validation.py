"""Validates the arguments of a recall and makes them a `Question`."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from memory_mcp.config.settings import Settings
from memory_mcp.dates.resolve import parse_range
from memory_mcp.domain import DETAILS, KEYS_LIMIT, KINDS, MODE_ALIASES, MODES, Filters, Question
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import few
from memory_mcp.language.names import normalized_length
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.language.unstorable import storable

TOP_K_LIMIT = 50
TOKENS_LIMIT = 100_000
TOKENS_FLOOR = 50
QUERY_LIMIT = 10_000

Word = TypeVar("Word", bound=str)


def question(
    *,
    settings: Settings,
    now: datetime,
    query: str | None = None,
    top_k: int | None = None,
    mode: str | None = None,
    tags: Sequence[str] = (),
    date_range: str | None = None,
    min_importance: float | None = None,
    hypothetical: str | None = None,
    keys: Sequence[str] = (),
    detail: str | None = None,
    max_tokens: int | None = None,
    category: str | None = None,
    session_id: str | None = None,
    kind: str | None = None,
    source: str | None = None,
) -> Question:
    """A checked question. `top_k` left out means `reranker_top_n`.

    Raises:
        InvalidInput: an argument can't be used; names it.
    """
    private = Redaction(settings.privacy)  # what is never stored can't be found, and must not reach a model or its cache
    asked = private.text(storable((query or "").strip(), "query"))
    wanted = (mode or "").strip().casefold() or "auto"
    mode = MODE_ALIASES.get(wanted, wanted)
    wanted_kind = (kind or "").strip().casefold()
    if not asked and mode == "auto" and any((tags, category, date_range, min_importance, session_id, wanted_kind, source)):
        mode = "recent"  # the filters alone are the question: what happened yesterday
    _check_asked(asked, mode, wanted_kind, hypothetical or "", keys)
    return Question(
        query=asked,
        top_k=_between("top_k", settings.reranker_top_n if top_k is None else top_k, 1, TOP_K_LIMIT),
        mode=_one_of("mode", mode, MODES),
        filters=Filters(
            tags=tuple(dict.fromkeys(private.text(storable(tag, "tags").strip()) for tag in few(tags, "tags") if tag.strip())),
            date_range=parse_range(date_range, now, settings.zone) if date_range and date_range.strip() else None,
            min_importance=_fraction("min_importance", min_importance or 0.0),
            category=private.text(storable((category or "").strip(), "category")) or None,
            session_id=private.text(storable((session_id or "").strip(), "session_id")) or None,
            kind=_one_of("kind", wanted_kind, KINDS) if wanted_kind else None,
            source=private.text(storable((source or "").strip(), "source")) or None,
        ),
        keys=tuple(dict.fromkeys(storable(key, "keys").strip() for key in keys)),
        hypothetical=private.text(storable((hypothetical or "").strip(), "hypothetical")),
        detail=_one_of("detail", (detail or "full").strip().casefold(), DETAILS),
        max_tokens=_between("max_tokens", 1500 if max_tokens is None else max_tokens, TOKENS_FLOOR, TOKENS_LIMIT),
    )


def _check_asked(asked: str, mode: str, kind: str, hypothetical: str, keys: Sequence[str]) -> None:
    """Raises InvalidInput if nothing is asked for, or more than can be looked for."""
    if not asked and not keys and mode != "recent":
        raise InvalidInput(
            "query is empty",
            "there is nothing to search for",
            "Send a query, or keys to fetch, or a filter such as date_range, tags or session_id, or mode=recent",
        )
    if asked and kind == "summary":
        raise InvalidInput(
            "kind is 'summary'", "summaries repeat memories, and are not searched", "Leave out the query for the latest of them"
        )
    for name, text in (("query", asked), ("hypothetical", hypothetical)):
        if (length := normalized_length(text)) > QUERY_LIMIT:
            raise InvalidInput(
                "{} has {} characters", "{} are the limit", "Ask in a sentence or two", name, f"{length:,}", f"{QUERY_LIMIT:,}"
            )
    if len(keys) > KEYS_LIMIT:
        raise InvalidInput("keys has {} entries", "{} are the limit", "Fetch them in several calls", len(keys), KEYS_LIMIT)


def token_budget(max_tokens: int | None, default: int) -> int:
    """A checked `max_tokens`."""
    return _between("max_tokens", default if max_tokens is None else max_tokens, TOKENS_FLOOR, TOKENS_LIMIT)


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise InvalidInput(
            "{} is {}", "it runs from {} to {}", "Send a number in that range, or leave it out", name, value, low, f"{high:,}"
        )
    return value


def _fraction(name: str, value: float) -> float:
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise InvalidInput("{} is {}", "it runs from 0 to 1", "Send a number in that range, or leave it out", name, f"{value:g}")
    return value


def _one_of(name: str, value: str, allowed: Sequence[Word]) -> Word:
    for word in allowed:
        if value == word:
            return word
    raise InvalidInput("{} is {}", "it is one of {}", "Leave it out if unsure", name, repr(value[:80]), ", ".join(allowed))
