"""The quality benchmark asks a real server, on the day that a question names."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT, clean_environment

from benchmarks.asking import asking
from benchmarks.clocked import time_in
from benchmarks.server import NO_MODELS
from benchmarks.sets import Asked, RetrievalSet, lines

pytestmark = pytest.mark.slow

MEMORIES = [
    {"key": "trip", "content": "友だちと温泉に行った。", "occurred_at": "2025-05-10T20:00:00+09:00"},
    {"key": "cinema", "content": "ひとりで映画館に行った。", "occurred_at": "2025-07-19T20:00:00+09:00"},
    {"key": "tea", "content": "紅茶より緑茶が好き。", "occurred_at": "2025-06-01T20:00:00+09:00"},
]


def set_in(directory: Path, corpus: Sequence[dict[str, Any]], queries: Sequence[dict[str, Any]]) -> Path:
    directory.mkdir()
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (directory / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return directory


def test_last_weekend_is_the_one_before_the_day_on_which_a_question_is_asked():
    def asked(now: str) -> Asked:
        return Asked(id=now, store="mei", query="先週末はどこに行った？", relevant=("trip",), category="time", now=now)

    spring, summer = asked("2025-05-13T12:00:00+09:00"), asked("2025-07-22T12:00:00+09:00")
    with asking(RetrievalSet("days", {"mei": MEMORIES}, [spring, summer])) as place:
        answers = {answer.question.id: answer for answer in place.answers(NO_MODELS, {}, [spring, summer])}
    assert answers[spring.id].ranked[0] == {"trip"}
    assert answers[summer.id].ranked[0] == {"cinema"}
    assert answers[spring.id].mode == "keyword"


def test_a_clock_without_a_file_is_the_real_one(tmp_path: Path):
    assert time_in(tmp_path / "none").tzinfo is not None


@pytest.mark.thorough
def test_a_set_in_a_directory_is_measured_and_one_part_taken_away(tmp_path: Path):
    corpus = [
        {"id": "a", "store": "s", "session": 1, "date": "2025-05-10T20:00:00", "speaker": "mei", "text": "好きな飲み物は？"},
        {"id": "b", "store": "s", "session": 1, "date": "2025-05-10T20:01:00", "speaker": "ren", "text": "緑茶"},
        {"id": "c", "store": "s", "session": 2, "date": "2025-05-11T20:00:00", "speaker": "ren", "text": "雨だね"},
    ]
    queries = [
        {"id": "q1", "store": "s", "query": "緑茶の話", "relevant": ["b"], "category": "any"},
        {"id": "q2", "store": "s", "query": "好きな飲み物は何？", "relevant": ["b"], "category": "any"},
        {"id": "q3", "store": "s", "query": "好きな天気は？", "relevant": ["c"], "category": "adversarial"},
    ]
    out = tmp_path / "out.jsonl"
    command = [
        "-m",
        "benchmarks.quality",
        "--set",
        str(set_in(tmp_path / "small", corpus, queries)),
        "--ablate",
        "neighbours",
        "--out",
        str(out),
    ]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=clean_environment(), capture_output=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr.decode()
    figures = {line["variant"]: line for line in lines(out) if line["what"] == "quality"}
    assert (figures["full"]["n"], figures["full"]["R@5"]) == (2, 1)
    assert figures["without neighbours"]["R@5"] == 0.5


@pytest.mark.thorough
@pytest.mark.timeout(300)  # five servers that load models
def test_less_and_less_reranking_is_measured_beside_all_of_it(tmp_path: Path, embedder_directory: Path, reranker_directory: Path):
    # Longer than the beginnings that are read where there is no time.
    corpus = [{"id": f"m{number}", "store": "s", "text": f"{number}杯目の緑茶を飲んだ。" * 20} for number in range(20)]
    queries = [{"id": "q", "store": "s", "query": "緑茶の話", "relevant": ["m3"]}]
    directory, out = set_in(tmp_path / "small", corpus, queries), tmp_path / "out.jsonl"
    models = ("--embedder", str(embedder_directory), "--reranker", str(reranker_directory))
    command = ["-m", "benchmarks.quality", "--set", str(directory), *models, "--languages", "ja", "--cascade", "--out", str(out)]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=clean_environment(), capture_output=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr.decode()
    ran = {line["variant"]: (line["counted"], line.get("degraded", {})) for line in lines(out) if line["what"] == "answers"}
    assert ran["five, reranked from 15"] == ({"hybrid, reranked=True": 1}, {})
    assert ran["five, those five reranked"] == ({"hybrid, reranked=True": 1}, {"rerank_shortened": 1})
    assert ran["five, their beginnings reranked"] == ({"hybrid, reranked=True": 1}, {"rerank_cut": 1})
    assert ran["five, not reranked"] == ({"hybrid, reranked=False": 1}, {})
    assert {line["variant"] for line in lines(out) if line["what"] == "quality"} == set(ran)
