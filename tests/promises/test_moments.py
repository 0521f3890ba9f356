"""Each moment at which the kill tests end a process is a place that exists in the product's code."""

import functools
import importlib

import pytest
from crashing import MOMENTS


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_moment_names_a_function_that_exists(moment: str) -> None:
    module, _, path = MOMENTS[moment][0].partition(":")
    assert callable(functools.reduce(getattr, path.split("."), importlib.import_module(module)))
