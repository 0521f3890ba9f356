"""An error's words."""

import pickle

import pytest

from memory_mcp import errors
from memory_mcp.errors import MemoryMCPError, without_passwords


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (("the disk is full",), "the disk is full."),
        (("the disk is full", "0 bytes are left"), "the disk is full: 0 bytes are left."),
        (("the disk is full", "0 bytes are left", "Free some room"), "the disk is full: 0 bytes are left. Free some room."),
        (("the disk is full", "", "Free some room"), "the disk is full. Free some room."),
    ],
)
def test_an_error_says_what_why_and_what_to_do(parts, sentence):
    assert str(MemoryMCPError(*parts)) == sentence


def test_the_page_of_errors_names_every_error():
    classes = [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, MemoryMCPError)]
    assert [name for name in classes if name not in (errors.__doc__ or "")] == []


def test_an_error_of_a_worker_process_arrives_as_it_was():
    sent = errors.NotInstalled("the graph can't be analyzed", "graph")
    received = pickle.loads(pickle.dumps(sent))  # noqa: S301  its own bytes
    assert (type(received), str(received), received.do) == (errors.NotInstalled, str(sent), sent.do)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("no answer at http://bob:Hunter2@127.0.0.1:9/v1.", "no answer at http://127.0.0.1:9/v1."),
        ("http://bob:pa/ss@host:9", "http://host:9"),
        ("redis://:pw@h and http://a:b@c@d/x", "redis://h and http://d/x"),
        ("postgres://u:ねこ@h", "postgres://h"),
        ("https://token@host/x", "https://host/x"),
        *(
            (same, same)
            for same in ("https://h:8080/@vite", "https://medium.com/@foo", "http://[::1]:8080/a@b", "http://h/x?m=b@c.d", "a@b.c")
        ),
    ],
)
def test_no_error_shows_the_password_of_an_address(told, shown):
    assert without_passwords(told) == shown
    assert str(MemoryMCPError("it failed", told, told)) == f"it failed: {shown}. {shown}."
