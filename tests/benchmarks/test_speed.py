"""The benchmarks of speed measure a real server beside what they name: an empty call, the bare models, the script that everybody writes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT, clean_environment

from benchmarks.sets import lines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=clean_environment(), capture_output=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def found(out: Path, what: str) -> list[dict[str, Any]]:
    return [line for line in lines(out) if line["what"] == what]


def test_saving_recalling_and_beginning_are_measured_at_every_size_with_every_number_of_clients(tmp_path: Path, thorough: bool):
    out, sizes = tmp_path / "out.jsonl", [20, 30] if thorough else [20]
    run("benchmarks.latency", "--memories", *map(str, sizes), *"--saves 2 --recalls 4 --clients 1 2 --out".split(), str(out))
    for what in ("recall", "get_context"):
        assert [(line["memories"], line["clients"]) for line in found(out, what)] == [
            (size, clients) for size in sizes for clients in (1, 2)
        ]
        assert all(0 < line["p50_ms"] <= line["p95_ms"] for line in found(out, what))
    assert [line["stored"] for line in found(out, "import")] == sizes
    assert [line["memories"] for line in found(out, "save")] == [line["memories"] for line in found(out, "floor")] == sizes


def test_long_turns_are_measured_until_words_meaning_and_the_graph_are_there(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    run("benchmarks.latency", *"--turns 12 --out".split(), str(out))
    (words,), (meaning,), (graph,) = (found(out, what) for what in ("all found by words", "all found by meaning", "the graph ready"))
    assert (words["turns"], words["stored"]) == (12, 12)
    assert 0 < words["after_s"] <= meaning["after_s"] <= graph["after_s"]


def test_every_page_of_the_dashboard_is_measured_beside_an_empty_call(tmp_path: Path):
    out = tmp_path / "out.jsonl"
    run("benchmarks.dashboard", *"--memories 60 --visits 1 --out".split(), str(out))
    rooms = {line["page"].partition(":")[0] for line in found(out, "page")}
    assert rooms == {"personas", "today", "memories", "memory", "ask", "find", "people", "house"}
    assert all(0 < line["p50_ms"] <= line["p95_ms"] for line in (*found(out, "floor"), *found(out, "page")))
    assert [line["stored"] for line in found(out, "import")] == [60]


@pytest.mark.thorough
def test_a_directory_that_is_filled_is_used_again(tmp_path: Path):
    out, data = tmp_path / "out.jsonl", tmp_path / "memory"
    data.mkdir()
    for _ in range(2):
        run("benchmarks.dashboard", *"--memories 60 --visits 1 --pages house --data".split(), str(data), "--out", str(out))
    assert [line["stored"] for line in found(out, "import")] == [60]


@pytest.mark.thorough
def test_recall_and_embedding_are_told_as_ratios_to_the_bare_models_with_what_was_reranked(
    tmp_path: Path, embedder_directory: Path, reranker_directory: Path
):
    out, equal_clients = tmp_path / "out.jsonl", ["2"]
    models = ("--embedder", str(embedder_directory), "--reranker", str(reranker_directory))
    size = ["--equal-clients", *equal_clients, *"--memories 40 --saves 2 --recalls 4 --clients 1 --deadline-ms 1 --out".split()]
    run("benchmarks.floor", *models, *size, str(out))
    embedding, hurried, *equal = found(out, "ratio")
    assert embedding["of"] == "embedding"
    assert embedding["throughput_to_floor"] > 0
    assert (hurried["clients"], hurried["deadline_ms"], hurried["whole"]) == (1, 1, 0)  # a millisecond is enough for nothing
    asked = [(ratio["clients"], ratio["deadline_ms"], ratio["reranked"], ratio["whole"]) for ratio in equal]
    assert asked == [(int(clients), 0, 1, 1) for clients in equal_clients]
    assert all(ratio["p50_to_floor"] > 0 and ratio["bare_models_ms"] > 0 for ratio in (hurried, *equal))


@pytest.mark.thorough
def test_the_floor_of_exported_models_is_the_same_bare_models(tmp_path: Path, embedder_directory: Path, reranker_directory: Path):
    out = tmp_path / "out.jsonl"
    models = ("--embedder", str(embedder_directory), "--reranker", str(reranker_directory), "--exports", str(tmp_path / "exports"))
    size = "--backend onnx-fp32 --memories 20 --saves 1 --recalls 4 --clients 1 --equal-clients --deadline-ms 0 --out".split()
    run("benchmarks.floor", *models, *size, str(out))
    assert [(line["backend"], line["counted"]) for line in found(out, "answers")] == [("onnx-fp32", {"hybrid, reranked": 4})]
    assert {line["of"] for line in found(out, "ratio")} == {"embedding", "recall"}


@pytest.mark.thorough
def test_the_script_and_the_server_do_the_same_with_the_same_models(tmp_path: Path, embedder_directory: Path, reranker_directory: Path):
    out = tmp_path / "out.jsonl"
    models = ("--embedder", str(embedder_directory), "--reranker", str(reranker_directory))
    run("benchmarks.naive", *models, *"--memories 20 --saves 2 --recalls 4 --clients 2 --deadline-ms 0 --out".split(), str(out))
    for what in ("save", "recall", "resident"):
        assert {line["by"] for line in found(out, what)} == {"script", "server"}
    assert [(line["by"], line["clients"]) for line in found(out, "recall")] == [("script", 1), ("script", 2), ("server", 1), ("server", 2)]
    assert [line["reranked"] for line in found(out, "answers")] == [1, 1]


@pytest.mark.thorough
def test_what_is_found_is_compared_with_the_vectors_of_the_script(tmp_path: Path, embedder_directory: Path):
    directory, out = tmp_path / "small", tmp_path / "out.jsonl"
    directory.mkdir()
    told = [{"id": f"m{number}", "store": "s", "text": text} for number, text in enumerate(("緑茶が好き", "海辺の散歩", "猫の名前はミケ"))]
    (directory / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told), encoding="utf-8")
    (directory / "queries.jsonl").write_text(
        json.dumps({"id": "q", "store": "s", "query": "緑茶", "relevant": ["m0"]}) + "\n", encoding="utf-8"
    )
    run("benchmarks.naive", "--embedder", str(embedder_directory), "--set", str(directory), "--languages", "ja", "--out", str(out))
    assert {line["by"]: line["R@5"] for line in found(out, "quality")} == {"script": 1, "server": 1}
    assert [(line["metric"], line["difference"]) for line in found(out, "difference")] == [("R@5", 0), ("R@10", 0)]


def test_two_results_that_have_nothing_in_common_say_so(tmp_path: Path):
    files = [tmp_path / f"{number}.jsonl" for number in (1, 2)]
    for number, file in enumerate(files):
        file.write_text(json.dumps({"what": "recall", "clients": number, "p50_ms": 1.0}) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.compare", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "no measurement is in both files" in done.stderr


def test_two_results_are_printed_as_ratios_and_whoever_reads_may_stop(tmp_path: Path):
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    for file, wait in ((before, 10.0), (after, 5.0)):
        file.write_text(
            "".join(json.dumps({"what": "recall", "clients": number, "p50_ms": wait}) + "\n" for number in range(20_000)), encoding="utf-8"
        )
    command = [sys.executable, "-m", "benchmarks.compare", str(before), str(after)]
    with subprocess.Popen(command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline()) == {"what": "recall", "clients": 0, "p50_ms": 0.5}
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0


def test_calls_of_this_tree_are_measured_beside_those_of_another(tmp_path):
    out = tmp_path / "results.jsonl"
    run("benchmarks.beside", str(ROOT), *"--memories 20 --turns 2 --clients 2 --tools recall --out".split(), str(out))
    machine, result = lines(out)
    assert machine["other"] == str(ROOT)
    assert (result["what"], result["clients"]) == ("recall", 2)
    assert all(low <= middle <= high and low > 0 for middle, low, high in (result[f"{of}_ratio"] for of in ("answer", "call", "processor")))
