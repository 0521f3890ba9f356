"""The rules that benchmarks take out of a server are where they are said to be."""

import importlib
from functools import reduce

import pytest

from benchmarks.quality import ABLATIONS
from benchmarks.rules import ROWS, RULES, SEARCH, take_out

PLACES = sorted({place for places in RULES.values() for place in places})


@pytest.mark.parametrize("place", PLACES)
def test_every_place_of_a_rule_is_a_name_of_its_module(place: str):
    module, *path = place.split(".")
    assert reduce(getattr, path, importlib.import_module(f"{SEARCH}.{module}")) is not None


def test_a_rule_that_there_is_not_ends_the_benchmark():
    with pytest.raises(SystemExit, match="there is no rule 'luck'"):
        take_out(["luck"])


def test_every_rule_can_be_ablated():
    assert {*RULES, *ROWS} <= ABLATIONS.keys()
