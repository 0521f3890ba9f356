"""Converts the texts in the fields of a form to the arguments of operations."""

import re

_COMMAS = re.compile("[,、，]")


def commas(value: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [part.strip() for part in _COMMAS.split(value) if part.strip()]
