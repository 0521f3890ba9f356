"""What is found out of a model with the built-in texts: the centers of its vectors, and which languages it knows."""

import hashlib
import itertools
import re
from collections import Counter

import numpy as np
import pytest

from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.centers import LANGUAGES, centers_of, measured, told_apart
from memory_mcp.encoders.embedding import Identity, PooledEmbedder
from memory_mcp.encoders.model_families import APART, AS_THEY_ARE, OF_QUESTIONS, OF_TEXTS, Traits, scale_of, traits_of
from memory_mcp.encoders.worker_pool import ModelPool

DIMENSION = 256
PLAIN = Traits(traits_of("somebody/something").prefixes)


def random(text: str) -> np.ndarray:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])).standard_normal(DIMENSION)


class Model:
    """Random vectors, in which a question is near to its answer in the languages of these codes, and all texts have `shared` in common."""

    def __init__(self, *codes: str, shared: float = 0.0) -> None:
        pairs = [pair for each in LANGUAGES if each.code in codes for pair in zip(each.questions, each.answers, strict=True)]
        self._about = {answer: question for question, answer in pairs}
        self._shared = shared * random("all")

    def embed_query(self, text: str) -> np.ndarray:
        return 3 * (random(self._about.get(text, text)) + 0.5 * random(f"{text}?") + self._shared)

    def embed_documents(self, texts: list[str]) -> list[np.ndarray]:
        return [self.embed_query(text) for text in texts]


def found(*codes: str, traits: Traits = PLAIN, shared: float = 0.0) -> Identity:
    return measured(Identity("model", DIMENSION, "model:1", traits), Model(*codes, shared=shared))


def test_the_built_in_languages_have_as_many_answers_as_questions():
    for language in LANGUAGES:
        assert len(language.questions) == len(language.answers) == len(set(language.answers))


def test_an_answer_counts_as_told_apart_from_each_that_is_less_near():
    assert told_apart(np.array([[0.9, 0.1, 0.2], [0.5, 0.4, 0.1], [0.0, 0.3, 0.2]], np.float32)) == pytest.approx(4 / 6)


@pytest.mark.parametrize("shared", [0.0, 5.0])
@pytest.mark.parametrize(("codes", "covered"), [(("ja", "en"), [True, True]), (("en",), [False, True]), ((), [False, False])])
def test_a_model_is_asked_in_the_languages_in_which_it_finds_answers(codes, covered, shared):
    identity = found(*codes, shared=shared)
    assert [identity.traits.covers(text) for text in ("どこに住んでいるの？", "Where does he live?")] == covered
    assert identity.traits.covers("Где он живёт?")
    assert (identity.centers is not None) == any(covered)


def test_a_model_that_reads_texts_and_knows_neither_language_may_know_another_and_is_as_it_was():
    class French(Model):
        """The sum of random vectors of the words."""

        def embed_query(self, text: str) -> np.ndarray:
            return sum(random(word) for word in re.findall(r"[A-Za-z]+|[぀-鿿]{2}", text))

    identity = Identity("model", DIMENSION, "model:1", PLAIN)
    assert not any(centers_of(French()).known)
    assert measured(identity, French()) == identity


@pytest.mark.parametrize(
    ("languages", "known"), [(None, (True, True)), (("en",), (False, True)), (("ja", "en"), (False, True)), (("en", "zh"), (True, True))]
)
def test_vectors_near_an_unknown_language_count_where_they_may_be_of_a_third_one(languages, known):
    identity = found("en", traits=Traits(PLAIN.prefixes, languages))
    assert identity.centers is not None
    assert identity.centers.known == known
    assert not identity.traits.covers("どこに住んでいるの？")


class Failing(Model):
    """Answers this number of calls each time that it is asked, and fails in the next one."""

    def __init__(self, calls: int, error: Exception) -> None:
        super().__init__("ja", "en")
        self.calls, self.left, self.asked, self.error = calls, calls, [], error

    def embed_query(self, text: str) -> np.ndarray:
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: list[str]) -> list[np.ndarray]:
        self.left -= 1
        if self.left < 0:
            self.left = self.calls
            raise self.error
        self.asked += texts
        return [Model.embed_query(self, text) for text in texts]


def test_a_model_that_fails_is_used_as_it_is_and_measured_later_from_where_it_stopped(caplog):
    model, identity = Failing(3, RuntimeError("429 rate limit")), Identity("model", DIMENSION, "model:1", PLAIN)
    embedder = PooledEmbedder(model, measured(identity, model), ModelPool(1), Caches(), owns_pool=True)
    assert (embedder.is_measured, embedder.centers, embedder.traits) == (False, None, PLAIN)
    assert "429 rate limit" in caplog.text
    attempts = list(itertools.takewhile(lambda is_measured: not is_measured, (embedder.measure() for _ in range(100))))
    assert len(attempts) > 5
    assert embedder.centers is not None
    assert embedder.centers.known == (True, True)
    assert max(Counter(model.asked).values()) == 1
    embedder.close()


def test_a_model_that_takes_too_long_is_measured_later(monkeypatch):
    monkeypatch.setattr("memory_mcp.encoders.centers.SECONDS", -1.0)
    identity = found("ja", "en")
    assert identity.centers is None
    assert identity.measure is not None
    monkeypatch.undo()
    assert identity.measure().centers is not None


def test_a_language_that_a_model_is_not_said_to_know_is_not_missed():
    traits = found("en", traits=Traits(PLAIN.prefixes, languages=("en",))).traits
    assert traits.unlearned == ()
    assert traits.guess() is None


def test_a_language_that_a_model_is_wrongly_said_to_know_is_named():
    traits = found("en", traits=Traits(PLAIN.prefixes, languages=("ja", "en"))).traits
    assert not traits.covers("猫")
    assert traits.guess() == "no questions in ja, because it finds too few of the built-in answers"
    assert traits.guess(languages_set=True) is None


def test_the_spread_is_that_of_the_languages_that_are_known():
    both, english = centers_of(Model("ja", "en")), centers_of(Model("en"))
    assert both.known == (True, True)
    assert english.known == (False, True)
    assert both.spread == pytest.approx(1 / np.sqrt(DIMENSION), rel=0.2)
    assert english.spread != both.spread
    assert scale_of(english).spread == english.spread


def test_the_vectors_of_a_model_with_prefixes_count_more_than_the_words_and_of_one_without_as_much():
    assert scale_of(found("ja", traits=Traits(traits_of("cl-nagoya/ruri-v3-30m").prefixes)).centers).weight == OF_QUESTIONS
    assert scale_of(found("ja").centers).weight == OF_TEXTS < OF_QUESTIONS


def test_of_a_model_without_centers_cosines_count_as_they_are():
    assert scale_of(found().centers) == AS_THEY_ARE
    assert scale_of(found("ja").centers).alike == APART.alike
