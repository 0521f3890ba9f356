"""The spread of a cross-encoder: the scale of its own scores, whatever that is."""

import math

import pytest

from memory_mcp.encoders.spread import LEAST_SPREAD, logit, spread_of
from memory_mcp.language.tokens import tokens


def model(scale, asked=None):
    """Answers by shared tokens, on a scale of its own."""

    def predict(pairs):
        if asked is not None:
            asked.append(pairs)
        shared = [len(set(tokens(query)) & set(tokens(text))) for query, text in pairs]
        return [1 / (1 + math.exp(-scale * (count - 1))) for count in shared]

    return predict


def test_a_model_of_twice_the_scale_has_twice_the_spread():
    assert spread_of(model(3.0)) == pytest.approx(2 * spread_of(model(1.5)), rel=0.1)


def test_a_model_that_finds_all_alike_has_the_least_spread_and_its_noise_is_not_magnified():
    assert spread_of(lambda pairs: [0.5] * len(pairs)) == LEAST_SPREAD
    assert spread_of(lambda pairs: [0.5 + 0.001 * (number % 2) for number in range(len(pairs))]) == LEAST_SPREAD


def test_scores_of_0_and_1_have_a_logit():
    assert logit(0.0) == pytest.approx(-logit(1.0))
    assert math.isfinite(logit(0.0))
    assert logit(1.5) == logit(1.0)


def test_a_model_is_measured_in_its_own_languages_with_one_question_in_a_call():
    asked = []
    spread_of(model(1.0, asked), ["ja"])
    assert all(len({query for query, _ in pairs}) == 1 for pairs in asked)
    assert {query for pairs in asked for query, _ in pairs} == {"どこに住んでいるの？", "会議は何時からだっけ？"}
    assert not any(text.startswith("[") for pairs in asked for _, text in pairs)


def test_a_model_of_other_languages_is_measured_in_all():
    asked = []
    spread_of(model(1.0, asked), ["ko"])
    assert len(asked) == 4
