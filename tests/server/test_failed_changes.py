"""A change that failed is recorded: which operation, when, and the kind of the error; nothing of what was sent."""

import json

import pytest

SECRET = "誰にも言えない秘密 xyzzy"


@pytest.fixture
def failures(server, name):
    """The failures in the table of the persona."""

    def failures():
        with server.runtime.personas.reading(name) as persona, persona.database.read() as connection:
            rows = connection.execute("SELECT operation, key, error, before, after, metadata FROM operations WHERE NOT success ORDER BY id")
            return rows.fetchall()

    return failures


@pytest.fixture
def lines(server, name):
    """The failures of the persona in the shared log."""

    def lines():
        written = (server.data / "memory_operations.log").read_text(encoding="utf-8")
        assert "xyzzy" not in written
        rows = map(json.loads, written.splitlines())
        return [(row["operation"], row["key"], row["error"]) for row in rows if row.get("persona") == name and not row["success"]]

    return lines


def test_a_change_that_fails_is_a_row_and_a_line_without_what_was_sent(persona, failures, lines):
    key = persona("remember", content="京都")["key"]
    persona.refusal("revise", key=SECRET, content=SECRET)
    persona.refusal("revise", key=key)
    persona.refusal("remember", content=SECRET, supersedes=SECRET)
    expected = [("revise", None, "MemoryNotFound"), ("revise", key, "InvalidInput"), ("remember", None, "MemoryNotFound")]
    assert failures() == [(*row, None, None, None) for row in expected]
    assert lines() == expected


def test_a_question_that_fails_and_a_change_of_nobody_are_not_recorded(persona, failures, name, server):
    persona.refusal("revise", key="nowhere", content="京都")
    assert not server.runtime.personas.exists(name)
    persona("remember", content="京都")
    persona.refusal("recall", query="x", date_range="いつか")
    assert failures() == []
