"""A fortnight of two characters over the gateway, with clients that send everything again, ask again, edit and go back."""

import httpx2
import pytest

from benchmarks.gateway import CHARACTERS, figures, play, stored
from benchmarks.vendor import vendor

pytestmark = pytest.mark.slow


def test_every_turn_is_kept_once_none_of_another_persona_and_the_model_sees_what_it_needs(serving, tmp_path, figure):
    with (
        vendor() as model,
        serving(tmp_path, llm={"vendors": {"lab": {"url": model.url}}}) as served,
        httpx2.Client(base_url=served.url, timeout=60) as http,
    ):
        played = play(http, model, lambda now: setattr(served.clock, "now", now))
        kept = {name: stored(http, name) for name in CHARACTERS}
    result = figures(played, kept)
    for name, texts in kept.items():
        assert sorted(texts) == sorted(played.said[name])
    assert result["of_others"] == 0
    assert result["turns"] >= 200
    assert result["needed_seen"] >= 0.8, result["missed"]
    assert result["tokens_put_in_per_turn_median"] <= 250
    figure("turns of a fortnight over the gateway", result["turns"])
    figure("turns over the gateway that were lost or stored twice", 0)
