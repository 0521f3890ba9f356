"""Of two memories about the same thing, the one that tells that it changed comes before the one that tells how it was.

「会議は木曜」 has more of the words of a question than 「会議は火曜になった」: what changed is told in words of its own. 「プリウスを手放してヤリスを買った」 has none of
those of 「車は何に乗ってる？」; it is found by what the best hit names (docs/decisions/0048-changed-facts.md).
"""

import unicodedata
from collections.abc import Mapping, Sequence, Set
from functools import cache, cached_property, partial
from itertools import combinations

import apsw

from memory_mcp.characters import HAN, HIRAGANA, KATAKANA, is_japanese
from memory_mcp.dates.spans import MONTH_NAMES
from memory_mcp.domain import Candidate, Memory, Origin, Question
from memory_mcp.language.changes import (
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
from memory_mcp.language.sentences import sentences_of
from memory_mcp.language.synonyms import phrase_as_written
from memory_mcp.language.tokens import is_function_word, is_grammar, normalise, query_tokens, tokens
from memory_mcp.patterns import bounded
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.lexical.token_frequencies import TokenCounts

# How much worse the change may match where both only say something alike: by a cosine from this on of their vectors apart from what all
# share, or with at least this share of the same words.
ALIKE_SCORE, ALIKE, SHARED_WORDS = 0.3, 0.5, 0.5
# How much worse the later of two about what may still be so may match: what ended is told in other words.
LATEST_SCORE = 0.5
# So many of the best are compared.
COMPARED = 10
# A change of the best hit is looked for in so many of the newest memories that name the same. An English word of so many letters may be a name.
NEWEST, SHORTEST_THING = 20, 4

_TOPIC = bounded(r"([^\Wはがをにでともへから]+)[はがを]")
_WORD_END = bounded(f"[{HIRAGANA}][はがを]")
_COMPOUND = bounded(f"[{HAN}]{{2}}")
# A count or a time is no thing that ends: 月 of 月2回 and 11月18日, 三日, 今年, Tuesday.
_COUNT_OR_TIME = bounded(
    r"[一二三四五六七八九十百千万億数半]+.?|(?:[今来去昨先本毎翌再々明前次平週年月午]|一昨)*[年月週日朝昼夕晩夜度回末前後]|\d+"
)
_TIMES = frozenset(
    tokens(
        "second minute hour day night morning noon afternoon evening week weekend month year time today tonight tomorrow yesterday "
        f"monday tuesday wednesday thursday friday saturday sunday {' '.join(MONTH_NAMES)}"
    )
)
# A noun, not the stem of a verb or an adjective: a particle or nothing in hiragana follows it.
_NOUN = bounded(
    rf"(?<![\d{HAN}])[{HAN}]+(?=[はがをにでともへのや]|から|まで|$|[^{HAN}{HIRAGANA}])|[{KATAKANA}]{{2,}}|[a-z]*[A-Z0-9][A-Za-z0-9]+"
)


class _Text:
    """A question or a memory, and what it says. Each is read once, and only as far as it matters."""

    def __init__(self, written: str) -> None:
        self.written = written
        self.plain = normalise(written)

    @cached_property
    def tokens(self) -> frozenset[str]:
        return frozenset(query_tokens(self.written))

    @cached_property
    def compounds(self) -> str:
        """Its pairs of kanji."""
        return " ".join(token for token in self.tokens if len(token) > 1 and _COMPOUND.fullmatch(token))

    @cached_property
    def nouns(self) -> frozenset[str]:
        words = _NOUN.findall(unicodedata.normalize("NFKC", self.written))
        return frozenset(normalise(word) for word in words if not (is_function_word(word) or _COUNT_OR_TIME.fullmatch(word)))

    @cached_property
    def things(self) -> Set[str]:
        """What it names: its nouns, in English its longer words."""
        if is_japanese(self.written):
            return self.nouns
        return {word for word in self.tokens - _TIMES if len(word) >= SHORTEST_THING and not (word.isdecimal() or is_function_word(word))}

    @cached_property
    def topics(self) -> frozenset[str]:
        """The tokens of what a change is about: what は, が or を follows in its sentence; in English the words before it."""
        before = about_change(self.plain)
        told = " ".join(_TOPIC.findall(before)) if is_japanese(self.plain) else before
        return frozenset(token for token in tokens(told) if not (is_function_word(token) or _is_no_content(token)))


def changes_of(connection: apsw.Connection, counts: TokenCounts, question: Question, best: Memory, told_at: str) -> list[int]:
    """The ids of the memories that tell a change of what the best hit says, whether they have a word of the question or not. `told_at` is its time."""
    asked, earlier = _Text(question.query), _Text(best.content)
    if len(best.content) > LONGEST or asks_before(asked.plain):
        return []
    things = _asked_things(asked, earlier)
    phrases = dict.fromkeys(filter(None, map(phrase_as_written, (*sorted(things), *events_of_states(asked.plain)))))
    newest = bm25_index.newest_naming(connection, list(phrases), question.filters, NEWEST, counts, telling_changes=True)
    return [told.memory_id for told in newest if told.told_at > told_at and _tells_of_same(asked, earlier, _Text(told.content), things)]


def changes_first(
    ranked: Sequence[Candidate], memories: Mapping[int, Memory], origins: Mapping[int, Origin], query: str
) -> list[Candidate]:
    """The candidates, best first, with what tells a change before what it changed, unless the query asks how it was; where it asks if something is still so,
    with the later of two about it first."""
    shown = [candidate for candidate in ranked[:COMPARED] if candidate.memory_id in memories]
    asked = _Text(query)
    is_latest_asked = asks_still(asked.plain)
    telling = {
        candidate.memory_id
        for candidate in shown[1:]
        if (is_latest_asked or tells_change(memories[candidate.memory_id].content)) and not candidate.verdict
    }
    if not telling or asks_before(asked.plain):
        return list(ranked)
    texts = {candidate.memory_id: _Text(memories[candidate.memory_id].content) for candidate in shown}
    things_of = cache(partial(_asked_things, asked))
    moved = False
    for above, candidate in combinations(shown, 2):
        before, after = origins[above.memory_id], origins[candidate.memory_id]
        if candidate.memory_id not in telling or above.score < candidate.score or after.told_at <= before.told_at or after.asks:
            continue
        earlier, later = texts[above.memory_id], texts[candidate.memory_id]
        if len(earlier.written) <= LONGEST and (
            _tells_of_same(asked, earlier, later, things_of(earlier))
            or _tells_something_alike(asked, above, candidate, earlier, later)
            or (is_latest_asked and _tells_latest(asked, above, candidate, earlier, later))
        ):
            candidate.score = above.score
            moved = True
    by_score = sorted(ranked, key=lambda candidate: (candidate.score, origins[candidate.memory_id].told_at), reverse=True)
    return by_score if moved else list(ranked)


def _tells_of_same(asked: _Text, earlier: _Text, later: _Text, things: Set[str]) -> bool:
    """Whether the change that the later text tells is one of what the earlier one says to this question: it ends one of the `things` that this one names,
    or says all that the question and this one share but for the state that it changed."""
    if any(ends(later.plain, thing) for thing in things):
        return not later.topics or any(len(topic) > 1 and topic in asked.tokens | earlier.tokens for topic in later.topics)
    both = _content_of_both(asked, earlier)
    if not both or not _may_be_of_same(asked, earlier, later):
        return False
    states = states_changed(asked.plain, later.plain)
    only_states = all(any(_is_of(token, state) for state in states) for token in both - later.tokens)
    return (only_states or bool(has_asked_value(asked.plain, later.plain))) and bool(later.topics & both or states)


def _asked_things(asked: _Text, earlier: _Text) -> Set[str]:
    """What a memory names in its sentences that have a word of the question, if any has; without what the question names, unless that asks for its end."""
    sentences = sentences_of(earlier.written)
    told = [sentence for each in sentences if _content_of_both(asked, sentence := _Text(each))] if len(sentences) > 1 else []
    things = {thing for sentence in told or [earlier] for thing in sentence.things}
    if asks_still(asked.plain):  # 弁当 of 弁当作り is no noun, but asked for
        return things | set(asked.compounds.split()) & set(earlier.compounds.split())
    return things - asked.things


def _tells_something_alike(asked: _Text, above: Candidate, candidate: Candidate, earlier: _Text, later: _Text) -> bool:
    """Whether both match nearly as well, and are alike by their vectors or their words."""
    return (
        above.score - candidate.score < ALIKE_SCORE
        and not asked.tokens.isdisjoint(earlier.tokens & later.tokens)
        and (_is_near(candidate, above) or len(earlier.tokens & later.tokens) >= SHARED_WORDS * len(earlier.tokens))
        and _may_be_of_same(asked, earlier, later)
    )


def _tells_latest(asked: _Text, above: Candidate, candidate: Candidate, earlier: _Text, later: _Text) -> bool:
    """Whether the later one has most of what the question and the earlier one share, and matches not much worse."""
    both = _content_of_both(asked, earlier)
    return above.score - candidate.score < LATEST_SCORE and 2 * len(both & later.tokens) > len(both)


def _may_be_of_same(asked: _Text, earlier: _Text, later: _Text) -> bool:
    """Whether the question or the earlier text names what the later one is about, the later one all that the query and the earlier one name, and the
    state that it changed is the one that is asked for."""
    value = has_asked_value(asked.plain, later.plain)
    if value is False or (value is None and changes_time(later.plain)) or changes_another_state(asked.plain, later.plain):
        return False
    return later.topics <= asked.tokens | earlier.tokens and (value or asked.nouns & earlier.nouns <= later.nouns)


def _is_near(candidate: Candidate, other: Candidate) -> bool:
    return candidate.vector is not None and other.vector is not None and float(candidate.vector @ other.vector) >= ALIKE


def _is_of(token: str, words: str) -> bool:
    return bool(set(token) & set(words)) if is_japanese(token) else token in tokens(words)


def _content_of_both(first: _Text, second: _Text) -> set[str]:
    """The tokens of both texts that say something: a kanji is none where it only is a part of longer words."""
    compounds = f"{first.compounds} {second.compounds}"
    return {token for token in first.tokens & second.tokens if not _is_no_content(token) and (len(token) > 1 or token not in compounds)}


def _is_no_content(token: str) -> bool:
    """Whether a token is grammar, or the end of a word and a particle."""
    return is_grammar(token) or _WORD_END.fullmatch(token) is not None
