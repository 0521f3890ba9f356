"""The rules of the search, each with a name by which a benchmark takes it out of the server that it starts.

A rule that a setting can switch off stands in `benchmarks.quality.ABLATIONS`; these have none. Each is a name of a module and what stands in
its place without the rule. A name that is gone ends the benchmark: a rule that was not taken out would be measured as worth nothing.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from memory_mcp.language.tokens import query_tokens

SEARCH = "memory_mcp.search"

# The first argument as it came, as a list.
_AS_IT_CAME: Callable[..., Any] = lambda candidates, *_, **__: list(candidates)  # noqa: E731
_NOTHING: Callable[..., Any] = lambda *_, **__: ()  # noqa: E731

RULES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "sounds": {"candidates.as_synonyms": _NOTHING},
        "spellings": {"candidates.spelled_otherwise": _NOTHING},
        "synonyms": {"candidates.synonyms": _NOTHING},
        "whole-words": {"candidates.whole_words": _NOTHING},
        "word-weights": {"candidates.weighed_query_tokens": lambda text, _known: query_tokens(text)},
        "phrases": {"candidates.query_phrases": _NOTHING},
        "support": {"ranking.supported": _AS_IT_CAME},
        "answers-to-questions": {"fuse._raise_answers": _NOTHING},
        "asking-penalty": {"fuse.ASKING_PENALTY": 0.0},
        "recency": {"fuse.RECENT_WEIGHT": 1.0},
        "named-days": {"ranking.from_named_dates": lambda *_: []},
        "written-days": {"ranking.from_written_dates": lambda *_: []},
        "previous-turn": {"meaning.PREVIOUS_SHARE": 0.0},
        "other-language": {"fuse.OTHER_LANGUAGE_SHARE": 0.0},
    }
)


def take_out(names: Sequence[str]) -> None:
    """Replaces these rules in the modules of this process, before a server starts in it.

    Raises:
        SystemExit: there is no such rule, or none of its places is left.
    """
    for name in names:
        if name not in RULES:
            raise SystemExit(f"there is no rule {name!r}: {', '.join(RULES)}")
        for place, instead in RULES[name].items():
            module_name, attribute = place.split(".")
            module = importlib.import_module(f"{SEARCH}.{module_name}")
            if not hasattr(module, attribute):
                raise SystemExit(f"{module.__name__} has no {attribute}: the rule {name!r} is elsewhere now")
            setattr(module, attribute, instead)
