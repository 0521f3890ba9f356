"""Of two hits about the same thing, the one that tells that it changed comes before the one that tells how it was.

「会議は木曜」 has more of the words of a question than 「会議は火曜になった」: what changed is told in words of its own.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from itertools import combinations

from memory_mcp.characters import HAN, HIRAGANA, KATAKANA, is_japanese
from memory_mcp.domain import Candidate, Memory, Origin
from memory_mcp.text.tokens import is_function_word, is_grammar, normalise, query_tokens, tokens

# How much worse the change may match where both only say something alike: by a cosine from this on of their vectors apart from what all
# share, or with at least this share of the same words.
ALIKE_SCORE, ALIKE, SHARED_WORDS = 0.3, 0.5, 0.5
# So many of the best are compared, and texts of so many characters: a long one tells of other things, too.
COMPARED, LONGEST = 10, 120

_CHANGED = re.compile(
    r"(?:[にくと]|よう)(?:な(?:った|りました)|[変替代]わ(?:った|りました)|[変替]え(?:た|ました))|変更(?:に|した|し[てま]|され)|"
    r"(?:やめ|辞め|引っ越し|買い[替換]え|乗り[替換]え|切り[替換]え|延ば?し|延び|早め|撤回し|移し|移っ|増え|減っ|上がっ|下がっ)(?:た|て|ました)|延期|ことに(?:した|しました)|(?:今|いま|これから|今後)(?:で)?は|"
    r"\b(?:now|no longer|any ?more|switched|moved|changed|became|instead|quit|stopped|from now on|replaced|postponed|rescheduled)\b"
)
_ASKS_BEFORE = re.compile(
    r"以前|昔|(?:^|[、。\s])前[はに]|もともと|元々|元は|最初|当時|\b(?:used to|before|previously|formerly|originally|at first|back then)\b"
)
_TOPIC = re.compile(r"([^\Wはがをにでともへから]+)[はがを]")
_END = re.compile(r"[。！？!?;]|\.\s")
# What follows a whole sentence in English.
_AFTER_ALL = frozenset({"now", "anymore", "any more", "instead", "from now on"})
# The states that a change ends, by parts of their tokens: who moved lives elsewhere.
_STATES = (
    (re.compile(r"引っ越し|転居|\bmoved"), ("住", "暮", "live")),
    (re.compile(r"辞め|転職|\b(?:quit|joined)"), ("働", "勤", "work")),
    (re.compile(r"やめ|[変替]え"), ("通", "習", "使")),
    (re.compile(r"買い[替換]え|乗り[替換]え|機種変"), ("乗", "使")),
)
# A noun, not the stem of a verb or an adjective: a particle or nothing in hiragana follows it.
_NOUN = re.compile(rf"[{HAN}]+(?=[はがをにでともへのや]|から|まで|$|[^{HAN}{HIRAGANA}])|[{KATAKANA}]{{2,}}|[a-z]*[A-Z0-9][A-Za-z0-9]+")


def changes_first(
    ranked: Sequence[Candidate], memories: Mapping[int, Memory], origins: Mapping[int, Origin], query: str
) -> list[Candidate]:
    """The candidates, best first, with what tells a change before what it changed, unless the query asks how it was."""
    shown = [candidate for candidate in ranked[:COMPARED] if candidate.memory_id in memories]
    if not any(_tells_change(memories[candidate.memory_id].content) for candidate in shown[1:]) or _ASKS_BEFORE.search(normalise(query)):
        return list(ranked)
    moved = False
    for above, candidate in combinations(shown, 2):
        before, after = origins[above.memory_id], origins[candidate.memory_id]
        earlier, later = memories[above.memory_id].content, memories[candidate.memory_id].content
        is_later = above.score >= candidate.score and after.told_at > before.told_at and not after.asks and _tells_change(later)
        if not (is_later and _is_same(query, earlier, later)):
            continue
        topics, named = _topics(later), _content(query) | _content(earlier)
        is_near = above.score - candidate.score < ALIKE_SCORE and (_is_near(candidate, above) or _has_words_of(later, earlier))
        if topics <= named and (is_near or _says_what_both_share(topics, query, earlier, later)):
            candidate.score = above.score
            moved = True
    by_score = sorted(ranked, key=lambda candidate: (candidate.score, origins[candidate.memory_id].told_at), reverse=True)
    return by_score if moved else list(ranked)


def _tells_change(text: str) -> bool:
    return len(text) <= LONGEST and _CHANGED.search(normalise(text)) is not None


def _is_same(query: str, earlier: str, later: str) -> bool:
    """Whether the later text names all that the query and the earlier one name, and has one of the query's words."""
    in_both = set(query_tokens(query)) & set(tokens(earlier)) & set(tokens(later))
    return len(earlier) <= LONGEST and bool(in_both) and _nouns(query) & _nouns(earlier) <= _nouns(later)


def _has_words_of(text: str, other: str) -> bool:
    wanted = set(tokens(other))
    return len(wanted & set(tokens(text))) >= SHARED_WORDS * len(wanted)


def _is_near(candidate: Candidate, other: Candidate) -> bool:
    return candidate.vector is not None and other.vector is not None and float(candidate.vector @ other.vector) >= ALIKE


def _says_what_both_share(topics: Set[str], query: str, earlier: str, later: str) -> bool:
    """Whether the change is of something that both the query and the earlier text name, and says all that these share but for the state that it ended."""
    both = _content(query) & _content(earlier)
    states = [state for change, some in _STATES if change.search(normalise(later)) for state in some]
    return bool(topics & both) and all(any(state in token for state in states) for token in both - _content(later))


def _topics(text: str) -> Set[str]:
    """The tokens of what a change is about: what は, が or を follows in its sentence; in English the words before it."""
    told = normalise(text)
    changed = _CHANGED.search(told)
    before = _END.split(told[: changed.start()])[-1] if changed and changed[0] not in _AFTER_ALL else ""
    return {token for topic in _TOPIC.findall(before) for token in _content(topic)} if is_japanese(told) else _content(before)


def _content(text: str) -> set[str]:
    return {token for token in query_tokens(text) if not (is_grammar(token) or is_function_word(token))}


def _nouns(text: str) -> frozenset[str]:
    return frozenset(normalise(word) for word in _NOUN.findall(unicodedata.normalize("NFKC", text)) if not is_function_word(word))
