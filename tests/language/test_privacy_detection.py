"""What is private in a text is found, what only looks like it is not, and no text takes for ever."""

import hashlib
import json
import time
import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_lines import lines
from secret_samples import PHRASES

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.language.privacy.redaction import KINDS, PIECE_CHARACTERS, Redaction, ascii_view, find, relations_redacted
from memory_mcp.language.privacy.secrets import lowered
from memory_mcp.store.memories import new_key

LINES = lines()
# What a rule must reach on these lines before it may take something out of a memory.
FLOORS = {
    "api_key": (0.97, 0.95),
    "url_credentials": (0.97, 0.95),
    "email": (0.97, 0.97),
    "credit_card": (0.97, 0.97),
    "my_number": (0.97, 0.97),
    "ssn": (0.97, 0.97),
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
    "numbers that are nearly private, in groups of one": "マイナ番号 1 1 1 1 1 1 1 1 1 1 1 1 ",
    "settings of connections": "?pwd=a",
    "settings of connections in quotes": "pwd='a",
    "passwords with slashes": "a://b:c/d@",
    "letters and at signs": "a@",
    "dots": "a.",
    "at signs in domains": "a@b.",
    "schemes": "a://",
    "credentials without a host": "a://b:c",
    "keys that go on": "sk-ant-",
    "tokens that end early": "eyJaaaaaaaa.",
    "beginnings of tokens": "eyJaaaaaaaa-",
    "keys of services": "AKIA sk-ant- ghp_ xoxb-1234567890- EAAC s. AQ. glpat-",
    "keys without an end between them": "glpat-1AbCdEf2GhIjKl34Mn5p",
    "tokens of all kinds in a row": "hooks.slack.com/services/" + "A" * 43 + "AKIAZ7Q2M4N6P3R5S7TUghp_" + "a1" * 18,
    "services and no keys": "discord = dropbox: twitter, facebook > ",
    "lines that end in a key": "sk-a1\n",
    "calls of curl": "curl -H a ",
    "long base64": "A1+/",
    "words for secrets": "password=",
    "words for secrets in one word": "token:a1B",
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
    return frozenset((finding.kind, finding.start, finding.end) for finding in find(text, KINDS) if finding.certain)


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


def test_in_lower_case_each_character_is_still_one_character():
    characters = "".join(map(chr, range(0x110000)))
    assert len(lowered(characters)) == len(characters)


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


PASSWORDS = ["Xk9#mP2$vLq8Wd", "hugcyp-7wYqfa-sotxab", "$7fKq!zR2mXv9", "aB3dE6gH9jK2mN5", "/8xQv+Lm2Zt/9Rk4", "k7:Wq?2x;Zp{4m,T9"]


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_password_is_seen_however_it_is_told(phrase: str) -> None:
    kept = [password for password in PASSWORDS if password in Redaction(Privacy()).text(phrase.format(password))]
    assert kept == []


@pytest.mark.parametrize("between", ["\u200b", "\u00ad", "\ufeff", "\u2060", "\u200d"])
@pytest.mark.parametrize(
    "secret", ["AKIAZ7Q2M4N6P3R5S7TU", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "4111111111111111", "a.person@example.com"]
)
def test_what_nobody_sees_hides_nothing(secret: str, between: str) -> None:
    rules = Privacy(email="redact")
    for place in (1, 5, len(secret) // 2, len(secret) - 1):
        written = f"これは {secret[:place]}{between}{secret[place:]} です"
        redacted = Redaction(rules).text(written)
        assert redacted in {f"これは [REDACTED_{kind}] です" for kind in ("API_KEY", "CREDIT_CARD", "EMAIL")}


@pytest.mark.parametrize(
    "number", ["4532 0151\n1283 0366", "4532 0151 1283\r\n0366", "4532\u20090151\u20091283\u20090366", "4532 - 0151 - 1283 - 0366"]
)
def test_a_card_number_is_seen_however_it_is_laid_out(number: str) -> None:
    assert Redaction(Privacy()).text(f"{number} です") == "[REDACTED_CREDIT_CARD] です"


def test_a_column_of_numbers_is_a_card_only_if_it_is_called_so() -> None:
    column = "4532\n0151\n1283\n0366"
    assert Redaction(Privacy()).text(column) == column
    assert Redaction(Privacy()).text(f"カード：{column}") == "カード：[REDACTED_CREDIT_CARD]"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\n  ", "\n> ", "\u00ad\n"])
@pytest.mark.parametrize("secret", ["ghp_16C7e42F292c6912E7710c838347Ae178B4a", "glpat-1AbCdEf2GhIjKl34Mn5p"])
def test_a_key_goes_as_a_whole_where_a_line_ends_inside_it(secret: str, line_end: str) -> None:
    for place in (3, 8, len(secret) // 2, len(secret) - 2):
        written = f"> key {secret[:place]}{line_end}{secret[place:]}\nthanks, 3rd try"
        assert Redaction(Privacy()).text(written) == "> key [REDACTED_API_KEY]\nthanks, 3rd try"


@pytest.mark.parametrize(
    "next_line", ["2024年に作った", "please remember it", "KEY2=abc", "user2: bob", "ghp_1A6C7e42F292c6912E7710c838347Ae178B4"]
)
def test_what_follows_a_key_on_the_next_line_stays(next_line: str) -> None:
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    assert Redaction(Privacy()).text(f"{key}\n{next_line}") == f"[REDACTED_API_KEY]\n{Redaction(Privacy()).text(next_line)}"


@pytest.mark.parametrize(
    "tree",
    [
        {"password": {"value": "Xk9#mP2$vLq8Wd"}},
        [{"name": "password", "value": "Xk9#mP2$vLq8Wd"}],
        {"my_number": "123456789018"},
        {"myNumber": {"value": 123456789018}},
        {"card": 4532015112830366.0},
    ],
)
def test_a_value_is_known_by_the_names_around_it(tree: object) -> None:
    assert "REDACTED" in json.dumps(Redaction(Privacy()).tree(tree))


def test_a_relation_names_what_its_target_is() -> None:
    relation = StatedRelation("健太", "password", "Xk9#mP2$vLq8Wd")
    assert relations_redacted([relation], Redaction(Privacy()))[0].target == "[REDACTED_API_KEY]"


@pytest.mark.parametrize("quote", ["", "> ", '"'])
@pytest.mark.parametrize("end", ["\n", "\\n", "\\n\n"])
def test_a_private_key_without_an_end_leaves_no_line(quote: str, end: str) -> None:
    lines = [
        "-----BEGIN RSA PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
        "",
        *["MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MhgwMbRvI0MBZhpI"] * 5,
    ]
    assert "MIIE" not in Redaction(Privacy()).text("".join(f"{quote}{line}{end}" for line in lines) + "\n覚えておいて。")


@pytest.mark.parametrize(
    "text", ["xoxo-gossip-girl", "token: ERC20/ERC721/BEP20", "トークンは Lv99-Fire-Ice-Wind", "トークンは ERC20-USDC-Pool-2024"]
)
def test_words_and_numbers_are_no_secret(text: str) -> None:
    assert Redaction(Privacy()).text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "password: sakura2024",
        "パスワードはHello123!です",
        "the password for the router is summer-99",
        "ログインID: yumi / PASS: Lepetit#2017",
        "パスは Zx81-Qw99-Lm20 にした",
        "ログインパスはhanako_0712です",
        "PASS→Tanaka#77",
        "PWはsakura2024",
        "パスワードは「ねこがすき2024!」にした",
        "暗証番号は4711",
        "パスコード：481516",
    ],
)
def test_a_password_of_words_is_flagged_and_stays(text: str) -> None:
    redaction = Redaction(Privacy())
    assert redaction.text(text) == text
    assert (redaction.flagged, redaction.redacted) == ({"api_key": 1}, {})


@pytest.mark.parametrize(
    "text",
    [
        "the password is 8 characters long",
        "パスワードは2024年に変えた",
        "password: see /etc/conf2",
        "Passwords for 2024: none",
        "password reset-link-2024-october",
        "the passphrase is limited to 1024 bytes",
        "パスを通す",
        "パスは src/project1/",
        "コンパス: sakura2024",
        "pass: 合格",
        "bypass is sakura2024",
        "パスワードは「忘れた」",
        "パスワードは「3回間違えた」と出る",
        "key: value2024",
        "暗証番号を忘れた",
        "暗証番号は2024年に変えた",
        "暗証番号は4桁",
    ],
)
def test_what_is_said_of_a_password_is_not_taken_for_one(text: str) -> None:
    redaction = Redaction(Privacy())
    assert (redaction.text(text), redaction.flagged) == (text, {})


@pytest.mark.parametrize(
    "line",
    ["key: {}", "memory key: {}", "key={}", "記憶のkey：{}", "**Key**: `{}`", "key: {}@team", "(key: {})", '- key: "{}", later'],
    ids=str,
)
def test_the_key_of_a_memory_is_no_secret_and_another_value_there_is_one(line: str) -> None:
    imported = f"obsidian_{hashlib.sha256(b'note').hexdigest()[:24]}"
    known = [
        "memory_20251030123045",
        "memory_20251030123045_ab12cd",
        imported,
        str(uuid.UUID(int=0x8F14E45FCEEA467A9A36DEDD4BEA2543, version=4)),
    ]
    for key in [*known, *(new_key() for _ in range(300))]:
        assert Redaction(Privacy()).text(line.format(key)) == line.format(key)
        assert Redaction(Privacy()).tree({"key": key, "supersedes": key}) == {"key": key, "supersedes": key}
    for secret in ("jt135gn482Kq7", "sk8Fj29dKq0LmZx81", "9f86d081884c7d659a2feaa0c55ad015"):
        assert secret not in Redaction(Privacy()).text(line.format(secret))
    assert "dm848vq594" not in Redaction(Privacy()).text("the password is dm848vq594")


def test_a_text_that_looks_like_a_placeholder_hides_nothing() -> None:
    assert "AKIA" not in Redaction(Privacy()).text("[REDACTED_AKIAZ7Q2M4N6P3R5S7TU]")


@pytest.mark.slow
def test_a_text_of_megabytes_is_read_in_pieces_that_cut_nothing_private():
    filler = "夕飯はカレーだった。\n"
    lines = PIECE_CHARACTERS // len(filler)
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "\n".join("MIIEpAIBAAKCAQEA" + "b" * 48 for _ in range(20))
        + "\n-----END RSA PRIVATE KEY-----\n"
    )
    for before in range(lines - 60, lines + 2, 7):
        text = filler * before + key + "anna@example.com\n" + filler * (lines * 3)
        redaction = Redaction(Privacy())
        redacted = redaction.text(text)
        assert "MIIEpAIBAAKCAQEA" not in redacted
        assert len(text) - len(redacted) > 1_000
        assert redaction.flagged["email"] == 1
        assert redacted.startswith(filler * before)
        assert redacted.endswith(filler * (lines * 3))
