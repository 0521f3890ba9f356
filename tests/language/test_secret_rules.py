"""Keys in the form of every rule, and numbers drawn at random, are taken out of sentences; what only looks like one is left."""

import re
from collections.abc import Iterator
from re import _parser

import pytest
from secret_samples import KINDS_OF_NUMBERS, MAKERS, Secret, lookalikes, numbers, passwords, rules, secrets

from memory_mcp.config.settings import Privacy
from memory_mcp.language.privacy import personal_data
from memory_mcp.language.privacy import secrets as searched
from memory_mcp.language.privacy.redaction import KINDS, Redaction, find
from memory_mcp.language.privacy.secrets import translated

EACH, NUMBERS, PASSWORDS, ORDINARY = 4, 200, 4, 800
LEAST_RECALL, LEAST_RECALL_OF_PASSWORDS = 0.97, 0.93
DEFAULTS, EVERYTHING = Privacy(), Privacy(**dict.fromkeys(KINDS, "redact"))


def stored(text: str, privacy: Privacy = DEFAULTS) -> str:
    return Redaction(privacy).text(text)


def noted(figure, kind, told, kept):
    figure(f"privacy: {kind} drawn at random", f"{len(told) - len(kept)} of {len(told)} taken out")
    figure("secrets told in a sentence", len(told))
    figure("secrets kept", len(kept))


def test_a_key_of_any_service_is_not_stored(figure):
    told = [secret for rule in rules() for secret in secrets(rule, EACH)]
    kept = [secret for secret in told if secret.secret in stored(secret.text)]
    noted(figure, f"api_key, by {len(rules())} rules", told, kept)
    assert len(told) >= 600
    assert {secret.rule for secret in told} == {secret.rule for secret in told if secret not in kept}
    assert len(kept) <= (1 - LEAST_RECALL) * len(told), kept


@pytest.mark.parametrize("kind", KINDS_OF_NUMBERS)
def test_a_number_that_is_private_is_not_stored(kind, figure):
    told = list(numbers(kind, NUMBERS))
    kept = [secret for secret in told if secret.secret in stored(secret.text, EVERYTHING)]
    if getattr(DEFAULTS, kind) == "redact":
        noted(figure, kind, told, kept)
    else:
        figure(f"privacy: {kind} drawn at random", f"{len(told) - len(kept)} of {len(told)} found")
    assert len(kept) <= (1 - LEAST_RECALL) * len(told), kept


@pytest.mark.parametrize("maker", MAKERS)
def test_a_password_that_a_program_made_is_not_stored(maker, figure):
    told = list(passwords(maker, PASSWORDS))
    kept = [secret for secret in told if secret.secret in stored(secret.text)]
    figure(f"privacy: passwords of {maker}", f"{len(told) - len(kept)} of {len(told)} taken out")
    figure("passwords told in a sentence", len(told))
    figure("passwords kept", len(kept))
    assert len(kept) <= (1 - LEAST_RECALL_OF_PASSWORDS) * len(told), kept


def test_what_stands_around_a_key_stays():
    for secret in (secret for rule in rules() for secret in secrets(rule, EACH)):
        redacted = stored(secret.text)
        assert redacted.startswith(secret.before)
        assert redacted.endswith(secret.after)


def test_what_only_looks_like_a_key_is_stored_as_it_is(figure):
    texts = list(lookalikes(ORDINARY))
    destroyed = [text for text in texts if stored(text) != text]
    figure("ordinary texts", len(texts))
    figure("ordinary texts destroyed", len(destroyed))
    assert destroyed == []


LINE_ENDS, INVISIBLE = ("\n", "\r\n", "\n  ", "\n> ", "\u00ad\n"), ("\u200b", "\u00ad", "\ufeff", "\u2060", "\u200d")
FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


def broken_up(told: Secret) -> Iterator[str]:
    """The text as it is, in full width, and with each sign at places in the secret, of which the first ones break what it begins with."""
    yield told.text
    yield told.text.translate(FULL_WIDTH)
    begin = told.text.index(told.secret)
    for place in {begin + 2, begin + 3, begin + len(told.secret) // 2}:
        yield from (f"{told.text[:place]}{sign}{told.text[place:]}" for sign in LINE_ENDS + INVISIBLE)


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("samples", ["keys", "passwords", "numbers"])
def test_what_is_looked_for_first_leaves_nothing_out(samples: str, every: int, monkeypatch: pytest.MonkeyPatch):
    """`make check` looks at every seventeenth text: about two of each secret, and of all ways in which one is broken up."""
    drawn = {
        "keys": (secret for rule in rules() for secret in secrets(rule, 1)),
        "passwords": (secret for maker in MAKERS for secret in passwords(maker, 1)),
        "numbers": (secret for kind in KINDS_OF_NUMBERS for secret in numbers(kind, 40)),
    }
    texts = [text for told in drawn[samples] for text in broken_up(told)][::every]
    found = [find(text, KINDS) for text in texts]
    monkeypatch.setattr(searched, "may_be_in", lambda _text: True)
    monkeypatch.setattr(personal_data, "has_number", lambda _text: True)
    missed = [text for text, findings in zip(texts, found, strict=True) if find(text, KINDS) != findings]
    assert not missed
    assert sum(map(bool, found)) > len(texts) / 2


@pytest.mark.parametrize(("start", "rest"), [("AK", "IAQYLPMN5HHHFPZAM2"), ("gh", "p_16C7e42F292c6912E7710c838347Ae178B4a")])
def test_a_line_end_in_what_a_key_begins_with_hides_nothing(start: str, rest: str):
    assert stored(f"見て {start}\n{rest} だよ") == "見て [REDACTED_API_KEY] だよ"


def test_no_rule_reads_further_than_a_bound():
    widths = {rule.name: _parser.parse(rule.pattern.pattern, re.ASCII).getwidth()[1] for rule in rules()}
    assert max(widths.values()) < 20_000, widths


@pytest.mark.parametrize(
    ("go", "python"),
    [
        (r"a(?i)b(c|d)e", r"a(?i:b(c|d)e)"),
        (r"(x-(?i)[a-z]{3})y", r"(x-(?i:[a-z]{3}))y"),
        (r"(?i)a+[[:alnum:]]*\z", r"(?i:a{1,4000}[A-Za-z0-9]{0,4000}\Z)"),
        (r"[+*(]{2,}", r"[+*(]{2,4000}"),
    ],
)
def test_an_expression_of_go_is_one_of_python(go, python):
    assert translated(go) == python
