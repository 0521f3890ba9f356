"""What is private in a text is found, what only looks like it is not, and no text takes for ever."""

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_lines import lines

from memory_mcp.text.privacy.ascii_view import ascii_view
from memory_mcp.text.privacy.redaction import KINDS, find

LINES = lines()
# What a rule must reach on these lines before it may take something out of a memory.
FLOORS = {
    "api_key": (0.97, 0.95),
    "url_credentials": (0.97, 0.95),
    "email": (0.97, 0.97),
    "credit_card": (0.97, 0.97),
    "my_number": (0.97, 0.97),
    "phone": (0.95, 0.95),
    "ip_address": (0.95, 0.95),
}
LARGE = 200_000
HOSTILE = {
    "digits": "1",
    "digits and hyphens": "1-",
    "telephones": "0312345678 ",
    "parts of telephones": "090-1234-",
    "cards": "4111 1111 1111 1111 ",
    "numbers that are nearly private": "マイナンバー 1234 5678 9018 ",
    "letters and at signs": "a@",
    "dots": "a.",
    "at signs in domains": "a@b.",
    "schemes": "a://",
    "credentials without a host": "a://b:c",
    "keys that go on": "sk-ant-",
    "tokens that end early": "eyJaaaaaaaa.",
    "words for secrets": "password=",
    "words for secrets without space": "token",
    "beginnings of private keys": "-----BEGIN PRIVATE KEY-----",
    "colons": ":",
    "addresses": "1.2.3.4 ",
    "brackets": "(0",
    "plus signs": "+81",
    "capitals": "M",
    "full-width digits": "９",
    "kana": "あ",
    "katakana dashes": "0ー",
}


def places(text: str) -> frozenset[tuple[str, int, int]]:
    return frozenset((finding.kind, finding.start, finding.end) for finding in find(text, KINDS))


def test_there_are_lines_of_every_kind_with_and_without_it():
    assert len(LINES) >= 300
    assert len({line.text for line in LINES}) == len(LINES)
    counts = Counter(kind for line in LINES for kind, *_ in line.private)
    assert set(counts) == set(KINDS)
    assert min(counts.values()) >= 10
    assert sum(not line.private for line in LINES) >= 100


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_found_where_it_is_and_nowhere_else(kind, figure):
    wanted = {(number, place) for number, line in enumerate(LINES) for place in line.private if place[0] == kind}
    found = {(number, place) for number, line in enumerate(LINES) for place in places(line.text) if place[0] == kind}
    right = len(wanted & found)
    precision, recall = right / len(found), right / len(wanted)
    figure(f"privacy: {kind}", f"precision {precision:.3f}, recall {recall:.3f} of {len(wanted)} in {len(LINES)} lines")
    missed = [LINES[number].text for number, _ in sorted(wanted ^ found)]
    assert (precision >= FLOORS[kind][0], recall >= FLOORS[kind][1]) == (True, True), missed


@given(st.lists(st.sampled_from(LINES), min_size=2, max_size=4))
def test_lines_below_each_other_are_read_as_each_for_itself(chosen):
    far_apart = "\n" + "あ" * 50 + "\n"
    text = far_apart.join(line.text for line in chosen)
    begins = [len(far_apart.join([line.text for line in chosen[:number]] + [""])) for number in range(len(chosen))]
    each = {
        (kind, begin + start, begin + end) for begin, line in zip(begins, chosen, strict=True) for kind, start, end in places(line.text)
    }
    assert places(text) == each


@given(st.text())
def test_the_ascii_view_of_a_text_is_as_long_as_the_text(text):
    assert len(ascii_view(text)) == len(text)


@given(st.text(alphabet="a0１:-.@+(/ あー＠=", max_size=200))
def test_findings_are_in_order_and_apart(text):
    found = find(text, KINDS)
    ends = [0, *(finding.end for finding in found)]
    assert all(end <= finding.start < finding.end <= len(text) for end, finding in zip(ends, found, strict=False))


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_text_made_to_take_for_ever_is_read_to_its_end(name, figure):
    piece = HOSTILE[name]
    text = (piece * (LARGE // len(piece) + 1))[:LARGE] + " 。taro@example.com"
    begin = time.perf_counter()
    found = find(text, KINDS)
    figure(f"privacy: seconds for 200 kB of {name}", f"{time.perf_counter() - begin:.2f}")
    assert (found[-1].kind, found[-1].end) == ("email", len(text))


def test_only_the_kinds_that_are_asked_for_are_looked_for():
    text = "taro@example.com 090-1234-5678"
    assert [finding.kind for finding in find(text, ["phone"])] == ["phone"]
    assert find(text, []) == []
