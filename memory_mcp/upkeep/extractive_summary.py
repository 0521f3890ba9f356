"""Extractive summaries of memories: the most central sentences that differ from each other, in their original order.

Centrality is LexRank's (Erkan & Radev 2004): a sentence is central if it is similar to central sentences. Among them, sentences are
selected by maximal marginal relevance (Carbonell & Goldstein 1998). Similarity is the cosine of the tokens, weighted by rarity.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_mcp.characters import is_japanese
from memory_mcp.language.low_value import low_value
from memory_mcp.language.sentences import sentence_ends, sentences_of
from memory_mcp.language.tokens import is_single_kanji, tokens

CHARACTERS_LIMIT = 400
SENTENCE_LIMIT = 120
# The computing time grows with the square of this.
SENTENCES_LIMIT = 100
NAMES_SHOWN = 4

_DAMPING, _ROUNDS, _SIMILARITY_FLOOR = 0.85, 30, 0.05
_MMR_LAMBDA = 0.7
_QUESTION_SHARE = 0.5
_FEW_TOKENS = 4

_QUESTION = re.compile(r"[?？][」』）)\"']*$")

_Vector = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Statement:
    """The text of a memory and its speaker. `importance` is from 0 to 1."""

    text: str
    source: str | None = None
    importance: float = 0.5


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    source: str | None
    importance: float


def extract(statements: Sequence[Statement], limit: int = CHARACTERS_LIMIT) -> str:
    """The selected sentences as lines with their speakers, at most `limit` characters. Empty if no sentence qualifies."""
    sentences = _candidates(statements)
    vectors = _vectors([sentence.text for sentence in sentences])
    similarity = _similarity(vectors)
    central = _centrality(similarity)
    highest = max(central, default=1.0)
    values = [
        # Each 0.25 of importance doubles the value: an important sentence may be similar to no other.
        (0.5 + centrality / highest) * 2 ** (4 * (sentence.importance - 0.5)) * _informativeness(sentence.text, vector)
        for centrality, sentence, vector in zip(central, sentences, vectors, strict=True)
    ]
    lines = [_line(sentence) for sentence in sentences]
    return "\n".join(lines[index] for index in sorted(_selected(values, similarity, [len(line) for line in lines], limit)))


def heading(days: Sequence[str], statements: Sequence[Statement], at_least: bool = False) -> str:
    """The first line: the day or days (ISO, sorted), the speakers, and the number of memories, marked as a minimum if `at_least`."""
    names = list(dict.fromkeys(statement.source for statement in statements if statement.source))
    japanese = sum(is_japanese(statement.text) for statement in statements) * 2 >= len(statements)
    when = days[0] if days[0] == days[-1] else f"{days[0]}..{days[-1]}"
    shown = ("、" if japanese else ", ").join(names[:NAMES_SHOWN])
    further = ("ほか" if japanese else " and others") if len(names) > NAMES_SHOWN else ""
    more = ("以上" if japanese else " or more") if at_least else ""
    count = f"{len(statements)}件{more}" if japanese else f"{len(statements)}{more} memories"
    return " · ".join(part for part in (when, shown + further, count) if part)


def cut(text: str, limit: int = CHARACTERS_LIMIT) -> str:
    """The longest prefix of at most `limit` characters that ends with a sentence or line, otherwise a prefix with an ellipsis."""
    if len(text) <= limit:
        return text
    kept = text[:limit]
    whole = kept[: max(sentence_ends(f"{kept} "), default=0)].rstrip()
    return whole if len(whole) > limit // 2 else text[: limit - 1].rstrip() + "…"


def _candidates(statements: Sequence[Statement]) -> list[_Sentence]:
    """The distinct sentences to select from; if there are too many, the most important, and of equally important ones the latest."""
    sentences: dict[str, _Sentence] = {}
    for statement in statements:
        for sentence in sentences_of(statement.text):
            if not low_value(sentence):
                shown = sentence if len(sentence) <= SENTENCE_LIMIT else sentence[: SENTENCE_LIMIT - 1] + "…"
                sentences.setdefault(shown, _Sentence(shown, statement.source, statement.importance))
    every = list(sentences.values())
    if len(every) <= SENTENCES_LIMIT:
        return every
    best = sorted(range(len(every)), key=lambda index: (-every[index].importance, -index))[:SENTENCES_LIMIT]
    return [every[index] for index in sorted(best)]


def _vectors(texts: Sequence[str]) -> list[_Vector]:
    """The tokens of each text with their weights (frequency x rarity among these texts), normalized to length 1."""
    counted = [Counter(token for token in tokens(text) if not is_single_kanji(token)) for text in texts]
    document_counts = Counter(token for counts in counted for token in counts)
    rarity = {token: math.log(1 + len(texts) / count) for token, count in document_counts.items()}
    weighted = [{token: count * rarity[token] for token, count in counts.items()} for counts in counted]
    lengths = [math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0 for vector in weighted]
    return [{token: weight / length for token, weight in vector.items()} for vector, length in zip(weighted, lengths, strict=True)]


def _similarity(vectors: Sequence[_Vector]) -> list[list[float]]:
    """The matrix of cosines."""
    matrix = [[1.0] * len(vectors) for _ in vectors]
    for index, vector in enumerate(vectors):
        for other in range(index):
            matrix[index][other] = matrix[other][index] = _cosine(vector, vectors[other])
    return matrix


def _cosine(vector: _Vector, other: _Vector) -> float:
    short, long = (vector, other) if len(vector) <= len(other) else (other, vector)
    return sum(weight * long.get(token, 0.0) for token, weight in short.items())


def _centrality(similarity: Sequence[Sequence[float]]) -> list[float]:
    """PageRank over the graph of similar sentences; a sentence similar to no other gets the share that damping leaves."""
    count = len(similarity)
    links: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for index, row in enumerate(similarity):
        near = [(other, value) for other, value in enumerate(row) if other != index and value >= _SIMILARITY_FLOOR]
        total = sum(value for _, value in near)
        for other, value in near:
            links[other].append((index, value / total))
    scores = [1.0] * count
    for _ in range(_ROUNDS):
        scores = [(1 - _DAMPING) + _DAMPING * sum(scores[source] * share for source, share in links[index]) for index in range(count)]
    return scores


def _informativeness(text: str, vector: _Vector) -> float:
    """A factor below 1 for questions and fragments, 1 for full statements."""
    return (_QUESTION_SHARE if _QUESTION.search(text) else 1.0) * min(len(vector) / _FEW_TOKENS, 1.0)


def _selected(values: Sequence[float], similarity: Sequence[Sequence[float]], lengths: Sequence[int], limit: int) -> list[int]:
    """The indexes of sentences that fit into `limit` characters, each of high value and different from those selected before."""
    top = max(values, default=0.0) or 1.0
    waiting, selected, left = set(range(len(values))), list[int](), limit

    def marginal(index: int) -> tuple[float, int]:
        redundancy = max((similarity[index][other] for other in selected), default=0.0)
        return _MMR_LAMBDA * values[index] / top - (1 - _MMR_LAMBDA) * redundancy, -index

    while fitting := [index for index in waiting if lengths[index] + 1 <= left]:
        best = max(fitting, key=marginal)
        selected.append(best)
        waiting.remove(best)
        left -= lengths[best] + 1
    return selected


def _line(sentence: _Sentence) -> str:
    return f"- {sentence.source}: {sentence.text}" if sentence.source else f"- {sentence.text}"
