"""The rules of the search, each with a name by which a benchmark takes it out of the server that it starts.

The rows of the table of signals are rules. Of the others each is a name of a module and what stands in its place without the rule;
those that a setting switches off stand in `benchmarks.quality.ABLATIONS`. A name that is gone ends the benchmark: a rule that was
not taken out would be measured as worth nothing.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from memory_mcp.language.analysis import Analysis
from memory_mcp.search import signals

SEARCH = "memory_mcp.search"

ROWS = tuple(signal.name for signal in signals.SIGNALS)

_NOTHING: Callable[..., Any] = lambda *_, **__: ()  # noqa: E731

RULES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "sounds": {"candidates.as_synonyms": _NOTHING},
        "synonyms": {"question.Analysis.synonyms": ()},
        "whole-words": {"question.Analysis.words": ()},
        "word-weights": {"question.Analysis.weighed_query_tokens": Analysis.query_tokens},
        "phrases": {"question.Analysis.query_phrases": ()},
        "support": {"signals.supported": lambda scored, **_: np.ones(len(scored.candidates), bool)},
        "named-days": {"candidates.from_named_dates": lambda *_: []},
        "previous-turn": {"meaning.PREVIOUS_SHARE": 0.0},
        "other-language": {"signals.OTHER_LANGUAGE_SHARE": 0.0},
    }
)


def take_out(names: Sequence[str]) -> None:
    """Takes these rules out of the modules of this process, before a server starts in it.

    Raises:
        SystemExit: there is no such rule, or none of its places is left.
    """
    for name in names:
        if name in ROWS:
            signals.SIGNALS = tuple(signal for signal in signals.SIGNALS if signal.name != name)
        elif name in RULES:
            for place, instead in RULES[name].items():
                _replace(name, place, instead)
        else:
            raise SystemExit(f"there is no rule {name!r}: {', '.join((*ROWS, *RULES))}")


def _replace(name: str, place: str, instead: object) -> None:
    module_name, *path, attribute = place.split(".")
    holder: Any = importlib.import_module(f"{SEARCH}.{module_name}")
    for part in path:
        holder = getattr(holder, part)
    if not hasattr(holder, attribute):
        raise SystemExit(f"{holder.__name__} has no {attribute}: the rule {name!r} is elsewhere now")
    setattr(holder, attribute, instead)
