"""Where this repository and what its tests read are."""

from pathlib import Path

SUPPORT = Path(__file__).parent
TESTS = SUPPORT.parent
ROOT = TESTS.parent
DATA = TESTS / "data"
CLIENTS = TESTS / "outside" / "clients"
