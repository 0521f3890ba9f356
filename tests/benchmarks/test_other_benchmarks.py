"""The benchmarks of contexts, of resident memory and of the graph measure a real server."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT, clean_environment

from benchmarks.sets import lines

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=clean_environment(), capture_output=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_the_start_and_the_memory_of_a_server_without_models_are_measured(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    run("benchmarks.memory", "--memories", "20", "--recalls", "4", "--clients", "2", "--out", str(out))
    found = list(lines(out))
    assert [line["moment"] for line in found if line["what"] == "resident"] == ["started", "stored", "recalled"]
    assert all(line["mb"] > 10 for line in found if line["what"] == "resident")
    start = next(line for line in found if line["what"] == "start")
    assert start["models"] == "no models"
    assert start["answered_s"] >= start["announced_s"]


def test_the_share_of_what_a_context_shows_is_measured_beside_recall_and_the_latest(tmp_path: Path):
    directory, out = tmp_path / "small", tmp_path / "out.jsonl"
    directory.mkdir()
    said = "\n".join(
        f'{{"id": "m{day}", "store": "s", "date": "2025-05-{day + 10}T20:00:00", "text": "{"緑茶が好き" if day == 0 else f"散歩その{day}"}"}}'
        for day in range(15)
    )
    (directory / "corpus.jsonl").write_text(said, encoding="utf-8")
    (directory / "queries.jsonl").write_text('{"id": "q1", "store": "s", "query": "緑茶", "relevant": ["m0"]}', encoding="utf-8")
    run("benchmarks.context", "--set", str(directory), "--variants", "5/3/0", "--out", str(out))
    needed = {line["variant"]: line["needed"] for line in lines(out) if line["what"] == "context"}
    assert needed == {"5/3/0": 1, "recall's first 10": 1, "the latest 10": 0}
    out.unlink()
    run("benchmarks.context", "--set", str(directory), "--variants", "5/3/1 with summaries", "--diaries", "60", "--out", str(out))
    shown = {line["set"]: line for line in lines(out) if line.get("variant") == "5/3/1 with summaries"}
    assert {name: line["readable"] for name, line in shown.items()} == {"small": 1, "small in diaries": 1}
    assert shown["small in diaries"]["items"] < shown["small"]["items"]


def test_the_graph_is_measured_with_its_analyses_and_recalls_beside_them(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    size = (
        "--entities",
        "30",
        "--relations",
        "60",
        "--memories",
        "20",
        "--clients",
        "1",
        "2",
        "--calls",
        "4",
        "--seconds",
        "0.5",
        "--pause",
        "0.1",
    )
    run("benchmarks.graph", *size, "--out", str(out))
    found = list(lines(out))
    filled = next(line for line in found if line["what"] == "import")
    assert filled["entities"] >= 30
    assert filled["relations"] >= 60
    assert {line["of"] for line in found if line["what"] == "analysis"} >= {"communities", "statistics"}
    assert {line["clients"] for line in found if line["what"] in ("floor", "neighbors")} == {1, 2}
    assert {"neighbors", "path", "snapshot", "recall at rest", "recall beside analyses", "ratio"} <= {line["what"] for line in found}


def test_advice_halves_the_corrections_that_a_japanese_task_needs_by_words_alone(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    run("benchmarks.experience", "--half", "test", "--out", str(out))
    found = list(lines(out))
    needed = {line["memory"]: line["per_task"] for line in found if line["what"] == "corrections" and line["language"] == "ja"}
    assert needed["advise"] <= needed["none"] / 2
    matched = [line for line in found if line["what"] == "matched"]
    assert matched[0]["right_first"] >= 0.6
    assert sum(line["wrong_advice_with_own_removed"] * line["n"] for line in matched) / sum(line["n"] for line in matched) < 0.03


def test_a_caller_is_timed_beside_a_hostile_load(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    run("benchmarks.victim", "--loads", "import-nested-json", "--seconds", "1", "--megabytes", "1", "--out", str(out))
    alone, beside = (line for line in lines(out) if line["what"] in ("alone", "beside"))
    for line in (alone, beside):
        assert line["failed"] == 0
        assert 0 < line["recall_p50"] <= line["recall_longest"]
        assert line["peak"] >= 1
