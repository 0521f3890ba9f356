"""An error's words."""

import pickle

import pytest

from memory_mcp import errors
from memory_mcp.errors import MemoryMCPError


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
