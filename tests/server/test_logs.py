"""The lines of the server's log, as text and as JSON: the product's, its libraries' and Python's warnings."""

import json
import logging
import warnings

import pytest

from memory_mcp.server import call_record, logs


@pytest.fixture(autouse=True)
def _unchanged_logging():
    """Puts back what a server changes for its whole process."""
    named = [logging.root, *(logging.getLogger(name) for name in (logs.PRODUCT.name, *logs.LIBRARIES))]
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in named]
    yield
    logging.captureWarnings(False)
    for logger, handlers, level, propagate in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate


def said(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.filterwarnings("always")
def test_what_libraries_and_python_say_is_json_too(capsys):
    logs.configure("info", "json")
    logging.getLogger("uvicorn.error").error("a connection broke")
    logging.getLogger("fastmcp.server").error("a tool broke")
    warnings.warn("that is outdated", DeprecationWarning, stacklevel=1)
    loggers = [(event["logger"], event["level"]) for event in said(capsys)]
    assert loggers == [("uvicorn.error", "error"), ("fastmcp.server", "error"), ("py.warnings", "warning")]


def test_a_traceback_is_one_field_and_one_line(capsys):
    logs.configure("info", "json")
    try:
        json.loads("a\nb")
    except ValueError:
        logs.PRODUCT.exception("it broke")
    (event,) = said(capsys)
    assert event["message"] == "it broke"
    assert event["exception"].startswith("Traceback")
    assert "JSONDecodeError" in event["exception"].splitlines()[-1]


def test_a_line_of_a_call_says_which_and_one_of_the_background_does_not(capsys):
    logs.configure("info", "json")
    logs.PRODUCT.info("started")
    record = call_record.begin("recall")
    logs.PRODUCT.info("slow")
    background, called = said(capsys)
    assert "request" not in background
    assert (called["request"], called["operation"]) == (record.number, "recall")


def test_what_was_said_before_the_format_was_known_is_not_lost(capsys):
    logs.hold()
    logs.PRODUCT.warning("an unknown key")
    logs.configure("info", "json")
    logs.announce("Memory MCP listens on http://127.0.0.1:1")
    assert [event["message"] for event in said(capsys)] == ["an unknown key", "Memory MCP listens on http://127.0.0.1:1"]


def test_as_text_a_line_is_as_before_and_an_announcement_stands_alone(capsys):
    logs.configure("info", "text")
    logs.PRODUCT.info("started")
    logs.announce("Memory MCP listens on http://127.0.0.1:1")
    started, announced = capsys.readouterr().err.splitlines()
    assert started.endswith(" INFO memory_mcp: started")
    assert announced == "Memory MCP listens on http://127.0.0.1:1"
