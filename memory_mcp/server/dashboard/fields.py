"""What people write into the fields of a form, as operations take it."""

import re

_COMMAS = re.compile("[,、，]")


def commas(value: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [part.strip() for part in _COMMAS.split(value) if part.strip()]
