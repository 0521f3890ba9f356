"""How many secrets of others' corpora are kept, and how many of their harmless lines and of ordinary texts are destroyed.

SECRET_CORPORA names a directory with checkouts, `gitleaks/` (github.com/gitleaks/gitleaks) and `detect-secrets/` (github.com/Yelp/detect-secrets),
and with ordinary texts as JSON lines in `prose/`. None of it is part of this project.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
from secret_corpora import Case, detect_secrets, gitleaks, prose
from secret_samples import rules

from memory_mcp.config.settings import Privacy
from memory_mcp.language.privacy.redaction import Redaction

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

# `secrets` reads these without a rule.
WITHOUT_RULE = {"jwt", "private-key"}


@pytest.fixture(scope="module")
def corpora() -> Path:
    named = os.environ.get("SECRET_CORPORA")
    if not named:
        pytest.skip("SECRET_CORPORA names no directory with the corpora: see the top of this file")
    return Path(named)


@pytest.fixture(scope="module")
def cases(corpora: Path) -> list[Case]:
    read = [*gitleaks(corpora / "gitleaks"), *detect_secrets(corpora / "detect-secrets")]
    assert sum(case.is_secret for case in read) > 600
    return read


def stored(text: str) -> str:
    return Redaction(Privacy()).text(text)


def is_kept(case: Case) -> bool:
    return case.secret in stored(case.text) if case.secret else stored(case.text) == case.text


def test_secrets_that_the_rules_are_for_are_not_kept(cases, figure):
    looked_for = {rule.name for rule in rules()} | WITHOUT_RULE
    told, kept = Counter(), Counter()
    for case in cases:
        if case.is_secret:
            group = "detect-secrets" if case.rule.startswith("detect") else "gitleaks" if case.rule in looked_for else "not looked for"
            told[group] += 1
            kept[group] += is_kept(case)
    for group in told:
        figure(f"secrets kept: {group}", f"{kept[group]} of {told[group]}")
    assert kept["gitleaks"] <= 0.02 * told["gitleaks"]


def test_lines_that_are_like_secrets_are_mostly_left(cases, figure):
    harmless = [case for case in cases if not case.is_secret]
    destroyed = [case.text for case in harmless if stored(case.text) != case.text]
    figure("texts destroyed: harmless lines of the rule sets", f"{len(destroyed)} of {len(harmless)}")
    assert len(destroyed) <= 0.15 * len(harmless)


def test_ordinary_texts_are_left(corpora, figure):
    texts = {text for text in prose(corpora / "prose") if len(text) > 15}
    destroyed = [text for text in texts if stored(text) != text]
    figure("texts destroyed: ordinary texts", f"{len(destroyed)} of {len(texts)}")
    assert len(texts) > 600
    assert destroyed == []
