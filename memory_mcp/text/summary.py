"""A summary made of what was said: the sentences that say most of what the others say, unlike each other, in their order.

Centrality is LexRank's (Erkan & Radev 2004): a sentence counts as much as those count that are like it. The choice among them
is by maximal marginal relevance (Carbonell & Goldstein 1998). Likeness is the cosine of the tokens, weighted by rarity.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_mcp.characters import is_japanese
from memory_mcp.text.low_value import low_value
from memory_mcp.text.tokens import is_single_kanji, tokens

CHARACTERS_LIMIT = 400
SENTENCE_LIMIT = 120
# The work grows with the square of this.
SENTENCES_LIMIT = 100
NAMES_SHOWN = 4

_DAMPING, _ROUNDS, _LIKENESS_FLOOR = 0.85, 30, 0.05
_MMR_LAMBDA = 0.7
_QUESTION_SHARE = 0.5
_FEW_TOKENS = 4

_SENTENCE = re.compile(r"[^。．！？!?\n]*[。．！？!?]+[」』）)\"']*|[^。．！？!?\n]+")
_ENGLISH_END = re.compile(r"(?<=[.])\s+(?=[A-Z\"'(])")
_QUESTION = re.compile(r"[?？][」』）)\"']*$")

_Vector = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Said:
    """What a memory says, and who said it. `importance` runs from 0 to 1."""

    text: str
    source: str | None = None
    importance: float = 0.5


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    source: str | None
    importance: float


def extract(said: Sequence[Said], limit: int = CHARACTERS_LIMIT) -> str:
    """At most `limit` characters: the chosen sentences as lines, in their order, each with who said it. Empty where nothing is worth it."""
    sentences = _worthy(said)
    vectors = _vectors([sentence.text for sentence in sentences])
    likeness = _likeness(vectors)
    central = _centrality(likeness)
    most = max(central, default=1.0)
    worth = [
        # Each quarter of importance counts as much as twice the rest: what must not be lost may be like nothing else.
        (0.5 + centrality / most) * 2 ** (4 * (sentence.importance - 0.5)) * _share(sentence.text, vector)
        for centrality, sentence, vector in zip(central, sentences, vectors, strict=True)
    ]
    lines = [_line(sentence) for sentence in sentences]
    return "\n".join(lines[place] for place in sorted(_chosen(worth, likeness, [len(line) for line in lines], limit)))


def heading(days: Sequence[str], said: Sequence[Said], at_least: bool = False) -> str:
    """The first line: the day or the days (ISO, sorted), who spoke, and how many memories it is made of, or that many at least."""
    names = list(dict.fromkeys(one.source for one in said if one.source))
    japanese = sum(is_japanese(one.text) for one in said) * 2 >= len(said)
    when = days[0] if days[0] == days[-1] else f"{days[0]}..{days[-1]}"
    shown = ("、" if japanese else ", ").join(names[:NAMES_SHOWN])
    further = ("ほか" if japanese else " and others") if len(names) > NAMES_SHOWN else ""
    more = ("以上" if japanese else " or more") if at_least else ""
    count = f"{len(said)}件{more}" if japanese else f"{len(said)}{more} memories"
    return " · ".join(part for part in (when, shown + further, count) if part)


def cut(text: str, limit: int = CHARACTERS_LIMIT) -> str:
    """The longest beginning of at most `limit` characters that ends with a sentence or a line, else with an ellipsis."""
    if len(text) <= limit:
        return text
    ends = [match.end() for match in re.finditer(r"[。．！？!?]+[」』）)\"']*|[.](?=\s)|(?=\n)", text[:limit])]
    return text[: ends[-1]].rstrip() if ends and ends[-1] > limit // 2 else text[: limit - 1].rstrip() + "…"


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, Japanese and English ends alike."""
    found = [piece.strip() for match in _SENTENCE.finditer(text) for piece in _ENGLISH_END.split(match.group())]
    return [piece for piece in found if piece]


def _worthy(said: Sequence[Said]) -> list[_Sentence]:
    """The sentences that may be chosen, none twice; of very many the most important, and of equally important the latest."""
    found: dict[str, _Sentence] = {}
    for one in said:
        for sentence in sentences_of(one.text):
            if not low_value(sentence):
                shown = sentence if len(sentence) <= SENTENCE_LIMIT else sentence[: SENTENCE_LIMIT - 1] + "…"
                found.setdefault(shown, _Sentence(shown, one.source, one.importance))
    every = list(found.values())
    if len(every) <= SENTENCES_LIMIT:
        return every
    best = sorted(range(len(every)), key=lambda place: (-every[place].importance, -place))[:SENTENCES_LIMIT]
    return [every[place] for place in sorted(best)]


def _vectors(texts: Sequence[str]) -> list[_Vector]:
    """Each text's tokens with their weights (frequency x rarity among these texts), at length 1."""
    counted = [Counter(token for token in tokens(text) if not is_single_kanji(token)) for text in texts]
    stands_in = Counter(token for counts in counted for token in counts)
    rarity = {token: math.log(1 + len(texts) / count) for token, count in stands_in.items()}
    weighted = [{token: count * rarity[token] for token, count in counts.items()} for counts in counted]
    lengths = [math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0 for vector in weighted]
    return [{token: weight / length for token, weight in vector.items()} for vector, length in zip(weighted, lengths, strict=True)]


def _likeness(vectors: Sequence[_Vector]) -> list[list[float]]:
    """The cosine of each with each."""
    matrix = [[1.0] * len(vectors) for _ in vectors]
    for place, one in enumerate(vectors):
        for other in range(place):
            matrix[place][other] = matrix[other][place] = _cosine(one, vectors[other])
    return matrix


def _cosine(one: _Vector, other: _Vector) -> float:
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    return sum(weight * long.get(token, 0.0) for token, weight in short.items())


def _centrality(likeness: Sequence[Sequence[float]]) -> list[float]:
    """PageRank over the sentences that are like each other; those like no other share what the damping leaves."""
    count = len(likeness)
    links: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for place, row in enumerate(likeness):
        near = [(other, value) for other, value in enumerate(row) if other != place and value >= _LIKENESS_FLOOR]
        total = sum(value for _, value in near)
        for other, value in near:
            links[other].append((place, value / total))
    scores = [1.0] * count
    for _ in range(_ROUNDS):
        scores = [(1 - _DAMPING) + _DAMPING * sum(scores[source] * share for source, share in links[place]) for place in range(count)]
    return scores


def _share(text: str, vector: _Vector) -> float:
    """What a question and a scrap count for beside a statement."""
    return (_QUESTION_SHARE if _QUESTION.search(text) else 1.0) * min(len(vector) / _FEW_TOKENS, 1.0)


def _chosen(worth: Sequence[float], likeness: Sequence[Sequence[float]], lengths: Sequence[int], limit: int) -> list[int]:
    """Places of sentences that fit together, each worth much and unlike those chosen before."""
    top = max(worth, default=0.0) or 1.0
    waiting, chosen, left = set(range(len(worth))), list[int](), limit

    def marginal(place: int) -> tuple[float, int]:
        sameness = max((likeness[place][other] for other in chosen), default=0.0)
        return _MMR_LAMBDA * worth[place] / top - (1 - _MMR_LAMBDA) * sameness, -place

    while fitting := [place for place in waiting if lengths[place] + 1 <= left]:
        best = max(fitting, key=marginal)
        chosen.append(best)
        waiting.remove(best)
        left -= lengths[best] + 1
    return chosen


def _line(sentence: _Sentence) -> str:
    return f"- {sentence.source}: {sentence.text}" if sentence.source else f"- {sentence.text}"
