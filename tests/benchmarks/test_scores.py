"""The figures of the quality benchmark, on answers that can be checked by hand."""

import json
import math
import platform
from pathlib import Path
from typing import Any

import pytest

from benchmarks.asking import Answer
from benchmarks.compare import ratios
from benchmarks.report import compared, processor, summary
from benchmarks.scores import of_question, paired_bootstrap, rank_of, separation
from benchmarks.sets import NONE, Asked


def ranked(*keys: str) -> list[set[str]]:
    return [{key} for key in keys]


def written(file: Path, *lines: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def asked(number: int, reached: float, variant: str = "full") -> dict[str, Any]:
    return {
        "what": "question",
        "set": "s",
        "variant": variant,
        "id": f"q{number}",
        **dict.fromkeys(("R@1", "R@5", "R@10", "MRR", "nDCG@10"), reached),
    }


def test_recall_is_the_share_of_the_relevant_among_the_first():
    found = of_question({"a", "b"}, ranked("x", "a", "y", "z", "w", "b"))
    assert (found["R@1"], found["R@5"], found["R@10"]) == (0, 0.5, 1)
    assert found["MRR"] == 0.5
    assert found["nDCG@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(7)) / (1 + 1 / math.log2(3)))


def test_memories_of_the_same_text_count_once():
    assert of_question({"a", "b"}, [{"a", "b"}, {"a", "b"}])["R@5"] == 1
    assert of_question({"a"}, [{"a", "b"}, {"a", "b"}])["nDCG@10"] == 1


def test_what_was_not_found_is_worth_nothing():
    assert set(of_question({"a"}, ranked("x")).values()) == {0}
    assert set(of_question({"a"}, []).values()) == {0}
    assert of_question({"a"}, ranked(*"0123456789", "a"))["R@10"] == 0


def test_a_place_counts_from_one():
    assert rank_of(["b"], ranked("a", "b")) == 2
    assert rank_of(["c"], ranked("a", "b")) is None


def test_scores_that_tell_the_two_kinds_apart_have_an_auroc_of_one_and_a_threshold_between_them():
    told = separation([0.7, 0.9], [0.1, 0.2])
    assert (told.auroc, told.accuracy, told.threshold) == (1, 1, 0.7)


def test_scores_that_are_all_the_same_tell_nothing():
    told = separation([1.0, 1.0], [1.0])
    assert (told.auroc, told.accuracy) == (0.5, 0.5)


def test_a_difference_in_every_question_is_no_chance_and_none_at_all_is():
    better = paired_bootstrap([0.0] * 30, [1.0] * 30)
    assert (better.mean, better.low, better.high) == (1, 1, 1)
    assert better.p < 0.001
    same = paired_bootstrap([0.5] * 30, [0.5] * 30)
    assert (same.mean, same.p) == (0, 1)


def test_a_difference_that_goes_both_ways_has_an_interval_around_zero():
    told = paired_bootstrap([0.0, 1.0] * 20, [1.0, 0.0] * 20)
    assert told.low < 0 < told.high
    assert told.p > 0.5


def test_two_results_are_compared_on_the_questions_that_both_hold(tmp_path: Path):
    before = written(tmp_path / "before.jsonl", asked(1, 0), asked(2, 0), asked(3, 1))
    after = written(tmp_path / "after.jsonl", asked(1, 1), asked(2, 1), asked(4, 0))
    found = {line["metric"]: line for line in compared(before, after, None, 2_000)}
    assert (found["R@5"]["n"], found["R@5"]["difference"]) == (2, 1)


def test_two_variants_of_one_result_are_compared(tmp_path: Path):
    both = written(tmp_path / "both.jsonl", asked(1, 1), asked(1, 0, "without dates"))
    (line,) = (line for line in compared(both, both, ["full", "without dates"], 2_000) if line["metric"] == "MRR")
    assert line["difference"] == -1


def test_ratios_are_of_the_same_measurement_under_the_same_circumstances(tmp_path: Path):
    before = written(
        tmp_path / "before.jsonl",
        {"what": "machine", "cores": 2},
        {"what": "recall", "clients": 1, "p50_ms": 10.0, "errors": 0},
        {"what": "recall", "clients": 8, "p50_ms": 40.0, "errors": 0},
    )
    after = written(
        tmp_path / "after.jsonl",
        {"what": "machine", "cores": 4},
        {"what": "recall", "clients": 8, "p50_ms": 20.0, "errors": 3},
        {"what": "recall", "clients": 50, "p50_ms": 1.0, "errors": 0},
    )
    assert list(ratios(before, after)) == [{"what": "recall", "clients": 8, "p50_ms": 0.5, "errors": None}]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            "model name\t: A Chip\nflags\t\t: fpu avx2 avx512_vnni\n\nmodel name\t: A Chip\nflags\t\t: fpu avx2 avx512_vnni\n",
            " A Chip avx2 avx512_vnni",
        ),
        ("processor : 0\nBogoMIPS : 50.0\nFeatures : fp asimd\n", ""),
        (None, ""),
    ],
)
def test_a_result_names_the_processor_as_far_as_the_system_tells_it(tmp_path: Path, told: str | None, said: str):
    if told:
        (tmp_path / "cpuinfo").write_text(told)
    assert processor(tmp_path / "cpuinfo") == platform.machine() + said


def test_noise_is_how_many_hits_questions_without_an_answer_have_on_average():
    def answer(question_id: str, category: str, relevant: tuple[str, ...], hits: int) -> Answer:
        hit_ids = tuple(frozenset({f"m{rank}"}) for rank in range(hits))
        return Answer(Asked(question_id, "s", "?", relevant, category), hit_ids, 0.5, "keyword", False, ())

    answers = [answer("q1", "detail", ("m0",), 9), answer("q2", NONE, (), 3), answer("q3", NONE, (), 0)]
    (abstention,) = (line for line in summary("s", "full", answers) if line["what"] == "abstention")
    assert (abstention["n"], abstention["noise"]) == (2, 1.5)
