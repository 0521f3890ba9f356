"""Weights of the search that are fitted to judgements: one half chooses, the other says whether they are better, and nothing is applied by itself."""

import pytest
from unloaded_models import unloaded_models

from memory_mcp.domain import Feedback
from memory_mcp.errors import InvalidInput
from memory_mcp.features.experience.weights import fit
from memory_mcp.store import feedback, memories
from memory_mcp.store.feedback import own_weights, set_own_weights, with_own_weights


@pytest.fixture
def fitted(nilou, settings, now):
    """What is fitted to the judgements so far."""
    return lambda: fit(nilou, models=unloaded_models(settings), settings=settings, indexes=None, now=now)


def judge(persona, key, verdict, query, now):
    def add(connection):
        memory = memories.by_keys(connection, [key])[key]
        feedback.add(connection, memory.id, [Feedback(verdict, now, query, query)])

    persona.database.write(add)


def test_a_few_judgements_are_not_enough(fitted, nilou, say, now):
    judge(nilou, say("苺が好き").key, "helped", "苺", now)
    with pytest.raises(InvalidInput, match="1 judged queries are too few"):
        fitted()


@pytest.mark.slow
def test_weights_that_rank_what_helped_first_are_found_and_confirmed_and_not_applied(fitted, nilou, say, now):
    # The word is in every turn of a long conversation, and what helped was told alone.
    for number in range(24):
        alone = say(f"話題{number}番は旅行").key
        say(f"話題{number}番の話題{number}番", session_id=f"s{number}")
        for turn in range(5):
            say(f"話題{number}番の話題{number}番の{turn}回目", session_id=f"s{number}")
        judge(nilou, alone, "helped", f"話題{number}番は", now)
    found = fitted()
    assert found.queries == 24
    assert found.fitted[1] >= found.fitted[0]
    assert found.is_better == (found.held_out[1] > found.held_out[0])
    assert own_weights(nilou.database) == {}


def test_a_personas_own_weights_count_for_it_alone_until_they_are_taken_back(nilou, settings):
    nilou.database.write(lambda connection: set_own_weights(connection, {"session_weight": 0.0, "nonsense": 1.0}))
    assert with_own_weights(nilou.database, settings).fusion.session_weight == 0.0
    assert settings.fusion.session_weight == 0.3
    nilou.database.write(lambda connection: set_own_weights(connection, {}))
    assert with_own_weights(nilou.database, settings) is settings
