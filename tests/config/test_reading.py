"""config.json and the environment as settings."""

import getpass
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.config.reading import (
    NO_HOME,
    config_beside,
    default_config_path,
    default_data_directory,
    default_server_url,
    default_token,
    have_home,
    load,
    personal_data_directory,
    spans_wanted,
    user_data_directory,
)
from memory_mcp.config.settings import Settings
from memory_mcp.errors import ConfigError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def read(tree, **environment: str):
    return load(json.dumps(tree), "config.json", environment)


def test_what_the_file_says_is_in_force_and_the_rest_is_default():
    loaded = read({"server_port": 9000, "vector_rebuild": {"mode": "manual"}})
    assert loaded.settings.server_port == 9000
    assert loaded.settings.vector_rebuild.mode == "manual"
    assert loaded.settings.vector_rebuild.idle_seconds == Settings().vector_rebuild.idle_seconds
    assert loaded.warnings == ()


def test_a_byte_order_mark_is_no_mistake():
    assert load('\ufeff{"server_port": 1}', "config.json", {}).settings.server_port == 1


def test_an_unknown_key_is_a_warning_that_names_the_nearest_known_one():
    assert read({"sever_port": 1}).warnings == ("config.json: unknown key 'sever_port' is ignored; did you mean 'server_port'?",)


def test_an_unknown_key_in_a_group_is_named_with_its_group():
    (warning,) = read({"fusion": {"dense_wieght": 1}}).warnings
    assert "'fusion.dense_wieght'" in warning
    assert "did you mean 'fusion.dense_weight'?" in warning


def test_an_unknown_key_that_resembles_none_gets_no_suggestion():
    assert read({"zzz": 1}).warnings == ("config.json: unknown key 'zzz' is ignored",)


def test_a_wrong_value_is_refused_with_the_key_the_value_and_what_is_allowed():
    with pytest.raises(ConfigError) as refusal:
        read({"server_port": 99999, "fusion": {"dense_weight": "much"}})
    assert "server_port = 99999 (should be less than or equal to 65535)" in str(refusal.value)
    assert 'fusion.dense_weight = "much" (should be a valid number)' in str(refusal.value)


@pytest.mark.feature("pools")
def test_what_is_refused_is_told_in_the_words_of_json():
    for tree, told in [
        ({"fusion": 5}, "fusion = 5 (should be an object)"),
        ({"pools": {"team": 5}}, "pools.team = 5 (should be an object)"),
        ({"pools": {"team": {"readers": "bob"}}}, "pools.team.readers = \"bob\" (should be a valid list or 'all')"),
    ]:
        with pytest.raises(ConfigError) as refusal:
            read(tree)
        assert f"not allowed: {told}. Correct" in str(refusal.value)


def test_a_key_with_a_dot_is_shown_in_its_group():
    (warning,) = read({"fusion.date_boost": 0.3}).warnings
    assert warning.endswith("""unknown key 'fusion.date_boost' is ignored; write it as {"fusion": {"date_boost": 0.3}}""")


@pytest.mark.parametrize("text", ["", " \n", "\ufeff\n"])
def test_an_empty_file_has_the_defaults(text):
    assert load(text, "config.json", {}) == load("{}", "config.json", {})


def test_what_is_no_json_is_refused_with_its_place():
    with pytest.raises(ConfigError, match="line 2, column 1"):
        load('{"server_port": 8000,\n', "config.json", {})


@pytest.mark.parametrize("text", ["[]", "null", '"x"', "[" * 100_000, '{"server_port": ' + "1" * 5000 + "}"])
def test_what_is_no_usable_object_is_refused(text):
    with pytest.raises(ConfigError, match=r"config\.json"):
        load(text, "config.json", {})


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(sorted(Settings.model_fields)) | st.text(), JSON, max_size=4))
def test_no_object_fails_in_any_way_but_a_refusal(tree):
    try:
        loaded = read(tree)
    except ConfigError:
        return
    assert isinstance(loaded.settings, Settings)


@pytest.mark.parametrize("text", [r'{"timezone": "\ud83d"}', r'{"\ud83d": 1}', r'{"embeddings_model": "\ud83d"}'])
def test_half_of_a_character_is_refused_in_words_that_can_be_sent(text):
    with pytest.raises(ConfigError, match="unpaired surrogate") as refused:
        load(text, "config.json", {})
    assert str(refused.value).encode()


def test_a_variable_overrides_the_file():
    loaded = read(
        {"server_port": 1, "vector_rebuild": {"mode": "idle", "idle_seconds": 5}},
        MEMORY_MCP_SERVER_PORT="2",
        MEMORY_MCP_VECTOR_REBUILD_MODE="manual",
    )
    assert loaded.settings.server_port == 2
    assert (loaded.settings.vector_rebuild.mode, loaded.settings.vector_rebuild.idle_seconds) == ("manual", 5)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("EMBEDDINGS_MODEL", "null", None), ("EMBEDDINGS_MODEL", "some/model", "some/model"), ("ALLOW_ANONYMOUS", "true", True),
        ("ALLOWED_HOSTS", '["memory"]', ["memory"]), ("TIMEZONE", "UTC", "UTC"), ("MIN_SCORE", "0.25", 0.25),
    ],
)  # fmt: skip
def test_a_variable_is_json_where_it_can_be_and_text_where_it_cannot(name, text, value):
    settings = read({}, **{f"MEMORY_MCP_{name}": text}).settings
    assert getattr(settings, name.lower()) == value


def test_a_variable_with_a_wrong_value_is_refused_by_its_key():
    with pytest.raises(ConfigError, match="MEMORY_MCP_SERVER_PORT"):
        read({}, MEMORY_MCP_SERVER_PORT="eight thousand")


def test_a_variable_that_is_no_setting_is_a_warning():
    (warning,) = read({}, MEMORY_MCP_SERVER_PROT="1").warnings
    assert warning == "environment variable MEMORY_MCP_SERVER_PROT is not a setting; did you mean MEMORY_MCP_SERVER_PORT?"


def test_variables_that_say_where_things_are_and_those_of_others_are_no_settings():
    assert (
        read(
            {}, MEMORY_MCP_DATA="/d", MEMORY_MCP_CONFIG="/c", MEMORY_MCP_URL="u", MEMORY_MCP_TOKEN="t", MEMORY_MCP_PERSONA="p", HOME="/h"
        ).warnings
        == ()
    )


def test_without_another_environment_the_real_one_counts(monkeypatch):
    monkeypatch.setenv("MEMORY_MCP_SERVER_PORT", "4321")
    assert load("{}", "config.json").settings.server_port == 4321


def test_where_things_are_when_nobody_says(monkeypatch):
    for name in ("CONFIG", "DATA", "URL", "TOKEN"):
        monkeypatch.delenv(f"MEMORY_MCP_{name}", raising=False)
    assert (default_config_path(), default_data_directory()) == (Path("config.json"), Path("memory"))
    assert default_server_url() is default_token() is None


def test_where_things_are_when_the_environment_says(monkeypatch):
    for name in ("CONFIG", "DATA", "URL", "TOKEN"):
        monkeypatch.setenv(f"MEMORY_MCP_{name}", f"some-{name}")
    assert (default_config_path(), default_data_directory()) == (Path("some-CONFIG"), Path("some-DATA"))
    assert (default_server_url(), default_token()) == ("some-URL", "some-TOKEN")


def test_the_data_of_somebody_who_names_none_are_in_a_checkout_or_else_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DATA", "CONFIG"):
        monkeypatch.delenv(f"MEMORY_MCP_{name}", raising=False)
    for entry in ("a program of its own", "config.json"):  # another program may have one of the two
        assert personal_data_directory() == user_data_directory()
        tmp_path.joinpath(entry).touch()
    tmp_path.joinpath("memory").mkdir()
    assert personal_data_directory() == Path("memory")
    assert config_beside(Path("memory")) == Path("config.json")
    tmp_path.joinpath("config.json").unlink()
    assert personal_data_directory() == user_data_directory()  # `memory` of another program
    for mark in (".server.lock", "memory_operations.log", "nilou/persona.json", "nilou/memory.sqlite"):
        path = tmp_path / "memory" / mark
        path.parent.mkdir(exist_ok=True)
        path.touch()
        assert personal_data_directory() == Path("memory"), mark
        path.unlink()
    monkeypatch.setenv("MEMORY_MCP_DATA", "/srv/memory")
    assert config_beside(personal_data_directory()) == Path("/srv/config.json")
    monkeypatch.setenv("MEMORY_MCP_CONFIG", "/etc/memory.json")
    assert config_beside(personal_data_directory()) == Path("/etc/memory.json")


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_SERVICE_NAME": "memory"}, False),
    ],
)
def test_spans_are_wanted_where_the_environment_names_a_collector(monkeypatch, environment, wanted):
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert spans_wanted() is wanted


def test_commands_elsewhere_work_on_the_data_of_stdio_if_there_are_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DATA", "CONFIG"):
        monkeypatch.delenv(f"MEMORY_MCP_{name}", raising=False)
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    assert (default_data_directory(), default_config_path()) == (Path("memory"), Path("config.json"))
    user_data_directory().mkdir(parents=True)
    assert tmp_path in user_data_directory().parents
    assert (default_data_directory(), default_config_path()) == (user_data_directory(), user_data_directory().parent / "config.json")
    tmp_path.joinpath("config.json").touch()
    assert (default_data_directory(), default_config_path()) == (Path("memory"), Path("config.json"))


@pytest.mark.skipif(sys.platform == "win32", reason="users of POSIX")
def test_a_user_without_a_home_and_a_name_gets_a_home_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", nobody)
    for name in ("HOME", "USER", "LOGNAME", "LNAME", "USERNAME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "")  # so that what is set here is taken back
    monkeypatch.setenv("HOME", "")
    monkeypatch.delenv("HOME")
    have_home()
    assert user_data_directory() == Path(NO_HOME, ".local/share/memory-mcp/memory")
    assert getpass.getuser() == str(os.getuid())


def test_a_user_with_a_home_keeps_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    have_home()
    assert os.environ["HOME"] == str(tmp_path)
