"""How like a task an experience is by vectors: equal for models of every scale, less sure among many, and never surer for being near to everything."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import HashingEmbedder

from memory_mcp.encoders.models import Centers
from memory_mcp.features.experience.likeness import LANGUAGES, SURE, Evidence, evidence, likeness, ordinary

CENTERS = Centers(np.eye(2, 256, dtype=np.float32), np.eye(2, 256, dtype=np.float32), (True, True), 0.1)
STORED = ["Renew passport town hall", "Sharpen kitchen knives", "Paint garden fence green"]


class _NearEverything(HashingEmbedder):
    """All its vectors have a large part in common, as those of e5 do."""

    def _vector(self, text: str) -> np.ndarray:
        vector = super()._vector(text) + 2 / np.sqrt(self.dimension)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def _asked(embedder: HashingEmbedder, text: str, experiences: int = len(STORED)) -> dict[int, Evidence]:
    known = ordinary(embedder)
    asked = known.apart(embedder.embed_query(text)[None], are_asked=True)[0]
    owners = [(number, True) for number in range(len(STORED))]
    return evidence(known, asked, embedder.embed_documents(STORED), owners, experiences)


@pytest.mark.parametrize("model", [HashingEmbedder, _NearEverything])
@pytest.mark.parametrize(("text", "number"), [("passport town hall", 0), ("kitchen knives", 1)])
def test_the_same_task_is_sure_and_others_are_not_whatever_all_vectors_share(model, text, number):
    embedder = model(256, model.__name__)
    known = ordinary(embedder)
    assert [key for key, each in _asked(embedder, text).items() if known.chance(each) >= SURE] == [number]


@pytest.mark.parametrize("model", [HashingEmbedder, _NearEverything])
def test_a_task_that_no_experience_is_about_is_unknown(model):
    embedder = model(256, model.__name__)
    assert max(map(ordinary(embedder).chance, _asked(embedder, "Tune piano strings").values())) < SURE


def test_among_many_experiences_a_near_one_says_less():
    few, many = (_asked(HashingEmbedder(256), "kitchen knives", experiences)[1] for experiences in (3, 300))
    assert likeness(many) < likeness(few)


def test_a_task_that_is_as_near_to_another_is_less_sure():
    near = Evidence(task=3.0, content=1.0, ahead=2.0, experiences=0.0)
    assert likeness(Evidence(task=3.0, content=1.0, ahead=0.0, experiences=0.0)) < likeness(near)


def test_ordinary_tasks_are_embedded_once_for_a_model_and_compared_only_in_its_languages():
    embedder = HashingEmbedder(64, "of English", languages=("en",))
    assert len(ordinary(embedder).tasks) == len(LANGUAGES[1])
    counted = embedder.documents_asked
    assert ordinary(embedder) is ordinary(embedder)
    assert embedder.documents_asked == counted == sum(map(len, LANGUAGES))


def test_what_is_in_a_language_that_the_model_does_not_know_is_like_nothing():
    embedder = HashingEmbedder(256, "of English, too", languages=("en",))
    embedder.centers = replace(CENTERS, known=(False, True))
    japanese, english = ordinary(embedder).apart(embedder.embed_documents(["会議室を予約する", "Book a meeting room"]))
    assert not japanese.any()
    assert english.any()


def test_what_may_be_in_a_third_language_that_the_model_knows_is_compared():
    embedder = HashingEmbedder(256, "of English and Chinese", languages=("en", "zh"))
    embedder.centers = replace(CENTERS, known=(False, True)).among(["en", "zh"])
    known = ordinary(embedder)
    assert len(known.tasks) == len(LANGUAGES[1])
    assert known.apart(embedder.embed_documents(["预约会议室"])).any()


def test_log_odds_are_in_units_of_how_like_each_other_the_shipped_tasks_are():
    known = ordinary(HashingEmbedder(256))
    alike, twice_as_far = replace(known, mean=-2.0, spread=1.0), replace(known, mean=-1.0, spread=2.0)
    near, nearer = Evidence(2.0, 2.0, 1.0, 0.0), Evidence(4.0, 4.0, 2.0, 0.0)
    assert alike.chance(near) < alike.chance(nearer)
    assert twice_as_far.chance(nearer) < alike.chance(nearer)
