"""Of two memories about the same thing, the one that tells that it changed comes before the one that tells how it was.

「会議は木曜」 has more of the words of a question than 「会議は火曜になった」: what changed is told in words of its own. 「プリウスを手放してヤリスを買った」 has none of
those of 「車は何に乗ってる？」; it is found by what the best hit names (docs/decisions/0048-changed-facts.md).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from itertools import combinations

import apsw

from memory_mcp.characters import HAN, HIRAGANA, KATAKANA, is_japanese
from memory_mcp.domain import Candidate, Memory, Origin, Question
from memory_mcp.store.lexical import bm25_index
from memory_mcp.text.changes import (
    LONGEST,
    about_change,
    asks_before,
    asks_still,
    changes_another_state,
    changes_time,
    ends,
    events_of_states,
    has_asked_value,
    states_changed,
    tells_change,
)
from memory_mcp.text.synonyms import phrase_of
from memory_mcp.text.tokens import is_function_word, is_grammar, normalise, query_tokens, tokens

# How much worse the change may match where both only say something alike: by a cosine from this on of their vectors apart from what all
# share, or with at least this share of the same words.
ALIKE_SCORE, ALIKE, SHARED_WORDS = 0.3, 0.5, 0.5
# So many of the best are compared.
COMPARED = 10
# A change of the best hit is looked for in so many of the newest memories that name the same. An English word of so many letters may be a name.
NEWEST, SHORTEST_THING = 20, 4

_TOPIC = re.compile(r"([^\Wはがをにでともへから]+)[はがを]")
_WORD_END = re.compile(f"[{HIRAGANA}][はがを]")
_COMPOUND = re.compile(f"[{HAN}]{{2}}")
_UNITS = frozenset("minut hour week month year time second".split())
# A noun, not the stem of a verb or an adjective: a particle or nothing in hiragana follows it.
_NOUN = re.compile(rf"[{HAN}]+(?=[はがをにでともへのや]|から|まで|$|[^{HAN}{HIRAGANA}])|[{KATAKANA}]{{2,}}|[a-z]*[A-Z0-9][A-Za-z0-9]+")


def changes_of(connection: apsw.Connection, question: Question, best: Memory, told_at: str) -> list[int]:
    """The ids of the memories that tell a change of what the best hit says, whether they have a word of the question or not. `told_at` is its time."""
    asked = normalise(question.query)
    if len(best.content) > LONGEST or asks_before(asked):
        return []
    phrases = dict.fromkeys(filter(None, map(_phrase, (*sorted(_things(best.content)), *events_of_states(asked)))))
    newest = bm25_index.newest_changes(connection, list(phrases), question.filters, NEWEST) if phrases else []
    return [memory_id for memory_id, when, content in newest if when > told_at and _tells_of_same(question.query, best.content, content)]


def changes_first(
    ranked: Sequence[Candidate], memories: Mapping[int, Memory], origins: Mapping[int, Origin], query: str
) -> list[Candidate]:
    """The candidates, best first, with what tells a change before what it changed, unless the query asks how it was."""
    shown = [candidate for candidate in ranked[:COMPARED] if candidate.memory_id in memories]
    if not any(tells_change(memories[candidate.memory_id].content) for candidate in shown[1:]) or asks_before(normalise(query)):
        return list(ranked)
    moved = False
    for above, candidate in combinations(shown, 2):
        before, after = origins[above.memory_id], origins[candidate.memory_id]
        earlier, later = memories[above.memory_id].content, memories[candidate.memory_id].content
        is_later = above.score >= candidate.score and after.told_at > before.told_at and not after.asks and tells_change(later)
        if (
            is_later
            and len(earlier) <= LONGEST
            and (_tells_of_same(query, earlier, later) or _tells_something_alike(query, above, candidate, earlier, later))
        ):
            candidate.score = above.score
            moved = True
    by_score = sorted(ranked, key=lambda candidate: (candidate.score, origins[candidate.memory_id].told_at), reverse=True)
    return by_score if moved else list(ranked)


def _tells_of_same(query: str, earlier: str, later: str) -> bool:
    """Whether the change that the later text tells is one of what the earlier one says to this question: it ends what that one names, or says all that
    the question and that one share but for the state that it changed."""
    asked, told = normalise(query), normalise(later)
    topics, named = _topics(later), _content(query) | _content(earlier)
    things = _things(earlier) - (frozenset() if asks_still(asked) else _things(query))
    if (not topics or any(len(topic) > 1 for topic in topics & named)) and any(ends(told, thing) for thing in things):
        return True
    if not _may_be_of_same(query, earlier, later):
        return False
    both, states = _content(query) & _content(earlier), states_changed(asked, told)
    only_states = all(any(_is_of(token, state) for state in states) for token in both - _content(later))
    return (only_states or bool(has_asked_value(asked, told))) and bool(both) and bool(topics & both or states)


def _tells_something_alike(query: str, above: Candidate, candidate: Candidate, earlier: str, later: str) -> bool:
    """Whether both match nearly as well, and are alike by their vectors or their words."""
    has_word_of_query = set(query_tokens(query)) & set(tokens(earlier)) & set(tokens(later))
    return (
        bool(has_word_of_query)
        and above.score - candidate.score < ALIKE_SCORE
        and (_is_near(candidate, above) or _has_words_of(later, earlier))
        and _may_be_of_same(query, earlier, later)
    )


def _may_be_of_same(query: str, earlier: str, later: str) -> bool:
    """Whether the question or the earlier text names what the later one is about, the later one all that the query and the earlier one name, and the
    state that it changed is the one that is asked for."""
    asked, told = normalise(query), normalise(later)
    value = has_asked_value(asked, told)
    if value is False or (value is None and changes_time(told)) or changes_another_state(asked, told):
        return False
    return _topics(later) <= _content(query) | _content(earlier) and (value or _nouns(query) & _nouns(earlier) <= _nouns(later))


def _phrase(word: str) -> str:
    return phrase_of(word) if is_japanese(word) else " ".join(tokens(word))


def _has_words_of(text: str, other: str) -> bool:
    wanted = set(tokens(other))
    return len(wanted & set(tokens(text))) >= SHARED_WORDS * len(wanted)


def _is_near(candidate: Candidate, other: Candidate) -> bool:
    return candidate.vector is not None and other.vector is not None and float(candidate.vector @ other.vector) >= ALIKE


def _is_of(token: str, words: str) -> bool:
    return bool(set(token) & set(words)) if is_japanese(token) else token in tokens(words)


def _topics(text: str) -> Set[str]:
    """The tokens of what a change is about: what は, が or を follows in its sentence; in English the words before it."""
    told = normalise(text)
    before = about_change(told)
    return {token for topic in _TOPIC.findall(before) for token in _content(topic)} if is_japanese(told) else _content(before)


def _content(text: str) -> set[str]:
    """The tokens that are neither grammar, nor the end of a word and a particle, nor a kanji of a longer word."""
    words = [token for token in query_tokens(text) if not (is_grammar(token) or is_function_word(token) or _WORD_END.fullmatch(token))]
    compounds = "".join(token for token in words if _COMPOUND.fullmatch(token))
    return {token for token in words if token not in compounds or _COMPOUND.fullmatch(token)}


def _things(text: str) -> Set[str]:
    """What a text names: its nouns, in English its longer words."""
    return _nouns(text) if is_japanese(text) else {word for word in _content(text) - _UNITS if len(word) >= SHORTEST_THING}


def _nouns(text: str) -> frozenset[str]:
    return frozenset(normalise(word) for word in _NOUN.findall(unicodedata.normalize("NFKC", text)) if not is_function_word(word))
