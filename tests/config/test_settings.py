"""What config.json may say."""

import re

import pytest
from places import ROOT
from pydantic import ValidationError

from memory_mcp.config.settings import NEEDS_RESTART, Fusion, Settings, documented_keys, restart_needed
from memory_mcp.features.experience.likeness import SURE
from memory_mcp.features.experience.matches import LEAST_BY_WORDS

DOCS = ROOT / "docs"

SEED_KEYS = {
    "embeddings_model", "embeddings_device", "reranker_model", "reranker_top_n", "server_host", "server_port",
    "vector_rebuild.mode", "vector_rebuild.idle_seconds", "vector_rebuild.min_interval",
}  # fmt: skip


def test_an_empty_file_means_a_server_for_this_machine_only():
    settings = Settings()
    assert (settings.server_host, settings.server_port, settings.allow_anonymous) == ("127.0.0.1", 8000, False)
    assert settings.on_missing_persona == "default"
    assert settings.zone.key == "Asia/Tokyo"


def test_the_keys_of_older_files_keep_their_names():
    assert {key for key, _, _ in documented_keys()} >= SEED_KEYS


def test_every_key_has_a_sentence_and_a_default_that_is_allowed():
    for key, default, description in documented_keys():
        assert description.endswith("."), key
        if "." not in key:
            Settings.model_validate({key: default})


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(ValidationError):
        Settings().server_port = 1


@pytest.mark.parametrize(
    "tree",
    [
        {"server_port": 65536}, {"server_port": "8000"}, {"server_port": 80.5}, {"reranker_top_n": 0}, {"reranker_top_n": 51}, {"timezone": "Tokyo"},
        {"timezone": ""}, {"timezone": "../etc/passwd"}, {"embeddings_model": " "}, {"toolsets": []}, {"toolsets": ["nonsense"]},
        {"fusion": {"dense_weight": 1.1}}, {"fusion": {"speaker_boost": -0.1}}, {"fusion": {"session_weight": 2.5}}, {"fusion": None}, {"vector_rebuild": {"mode": "never"}}, {"log_level": "loud"}, {"min_score": -1},
    ],
)  # fmt: skip
def test_a_value_outside_what_is_allowed_is_refused(tree):
    with pytest.raises(ValidationError):
        Settings.model_validate(tree)


def test_null_means_no_model():
    settings = Settings.model_validate({"embeddings_model": None, "reranker_model": None})
    assert settings.embeddings_model is settings.reranker_model is None


def test_only_a_changed_key_that_needs_it_asks_for_a_restart():
    old = Settings()
    assert (
        restart_needed(old, old.model_copy(update={"fusion": Fusion(date_boost=1, speaker_boost=0, session_weight=1), "timezone": "UTC"}))
        == []
    )
    assert restart_needed(old, old.model_copy(update={"server_port": 1, "allowed_hosts": ["a"]})) == ["allowed_hosts", "server_port"]


def test_the_description_of_every_key_that_needs_a_restart_says_so():
    told = {key.partition(".")[0] for key, _, description in documented_keys() if "Needs a restart" in description}
    assert told == NEEDS_RESTART


def test_the_sentence_about_similar_tasks_has_the_numbers_of_the_code():
    (description,) = [sentence for key, _, sentence in documented_keys() if key == "experience.similar_from"]
    numbers = [str(SURE), str(LEAST_BY_WORDS)]
    assert re.findall(r"0\.\d+", description) == numbers
    for page in ("keys-search.md", "keys-search.ja.md"):
        (row,) = [line for line in (DOCS / page).read_text(encoding="utf-8").splitlines() if line.startswith("| `experience.similar_from`")]
        assert re.findall(r"0\.\d+", row) == numbers
