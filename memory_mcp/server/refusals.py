"""Refusals in the language of the page; one without a translation has that of its status, with the English words beside it."""

from dataclasses import dataclass

from memory_mcp.config.settings import Privacy
from memory_mcp.dates.format import Language
from memory_mcp.errors import MemoryMCPError
from memory_mcp.server.errors import status_of, wording
from memory_mcp.wording import catalog, in_japanese


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal as a page shows it: a sentence in the page's language, and the original if it has no translation."""

    text: str
    original: str = ""


def refused(error: MemoryMCPError, language: Language, rules: Privacy) -> Refused:
    """The words for an error, with private data redacted."""
    words = wording(str(error), rules)
    if language == "en":
        return Refused(words)
    if japanese := in_japanese(words):
        return Refused(japanese)
    by_status = catalog()["status"]
    return Refused(by_status.get(str(status_of(error)), by_status["400"]), words)
