"""config.json over HTTP: what is shown of it, what may be changed by whom, and what becomes of the file."""

import json
from datetime import UTC, datetime

import pytest

from memory_mcp.config.settings import ONLY_IN_THE_FILE, documented_keys
from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.server.actions import configuration
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow  # a server for each test

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
FILE = '{\n  "server_port": 8000,\n  "my_note": {"so": 1},\n  "embeddings_model": null,\n  "reranker_model": null,\n  "fusion": {"mine": true}\n}'


@pytest.fixture
def config(own_server, own_http):
    """config(values={…}): the status and the answer of a change; config(): of a look."""
    own_server.config.write_text(FILE, encoding="utf-8")

    def config(headers=None, **sent):
        method = "PATCH" if sent else "GET"
        answer = own_http.request(method, "/api/config", headers=headers, **({"json": sent} if sent else {}))
        return answer.status_code, answer.json()

    return config


def by_key(answer):
    return {setting["key"]: setting for setting in answer["settings"]}


def test_every_setting_is_shown_with_its_schema_and_where_its_value_comes_from(config, monkeypatch):
    monkeypatch.setenv("MEMORY_MCP_MIN_SCORE", "0.25")
    shown = by_key(config()[1])
    assert set(shown) == {key for key, _, _ in documented_keys()}
    assert shown["server_port"]["set_by"] == "file"
    assert "set_by" not in shown["fusion.date_boost"]
    assert shown["min_score"]["set_by"] == "MEMORY_MCP_MIN_SCORE"
    assert not shown["min_score"]["editable"]
    assert shown["fusion.date_boost"]["schema"]["maximum"] == 2
    assert shown["fusion.date_boost"]["schema"]["description"]
    assert shown["server_port"]["restart"]
    assert {key for key in shown if not shown[key]["editable"]} == {*ONLY_IN_THE_FILE, "min_score"}


def test_a_change_takes_effect_at_once_and_keeps_what_else_stands_in_the_file(config, own_server):
    status, answer = config(values={"fusion.date_boost": 0.4, "retention.keep_tags": ["大事"], "fusion.dense_weight": None})
    assert status == 200
    assert by_key(answer)["fusion.date_boost"]["value"] == 0.4
    assert own_server.runtime.config.current().fusion.date_boost == 0.4
    tree = json.loads(own_server.config.read_text(encoding="utf-8"))
    assert list(tree) == ["server_port", "my_note", "embeddings_model", "reranker_model", "fusion", "retention"]
    assert tree["fusion"] == {"mine": True, "date_boost": 0.4, "dense_weight": None}
    assert "大事" in own_server.config.read_text(encoding="utf-8")
    config(reset=["retention.keep_tags", "fusion.date_boost", "fusion.dense_weight", "server_port"])
    tree = json.loads(own_server.config.read_text(encoding="utf-8"))
    assert list(tree) == ["my_note", "embeddings_model", "reranker_model", "fusion"]


def test_a_change_after_an_edit_that_came_while_the_settings_were_shown_is_refused(config, own_server, monkeypatch):
    config()
    current = own_server.runtime.config.current

    def as_somebody_edits():
        settings = current()
        own_server.config.write_text(FILE.replace('"reranker_model"', '"reranker_top_n": 3,  "reranker_model"'), encoding="utf-8")
        return settings

    monkeypatch.setattr(own_server.runtime.config, "current", as_somebody_edits)
    shown = configuration._view(own_server.runtime.config)
    monkeypatch.undo()
    assert by_key(shown)["reranker_top_n"]["value"] != 3
    status, answer = config(values={"reranker_top_n": 5}, revision=shown["revision"])
    assert (status, "was changed meanwhile" in str(answer)) == (400, True)


def test_a_setting_that_needs_a_restart_is_written_and_said_to_wait(config):
    status, answer = config(values={"toolsets": ["core", "graph"]})
    assert status == 200
    assert answer["restart_pending"] == ["toolsets"]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("fusion.date_boost", 3, "less than or equal to 2"),
        ("fusion.date_boost", "much", "valid number"),
        ("language", "fr", "'auto', 'ja' or 'en'"),
        ("timezone", "Mars", "an IANA time zone"),
        ("fusion.nothing", 1, "there is no such key"),
        ("fusion", {}, "there is no such key"),
        ("min_scores", {"a": 2}, "less than or equal to 1"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_by_its_key_and_nothing_is_written(config, own_server, key, value, why):
    status, answer = config(values={key: value, "min_score": 0.1})
    assert status == 400
    assert list(answer["problems"]) == [key]
    assert why in answer["problems"][key]
    assert own_server.config.read_text(encoding="utf-8") == FILE


@pytest.mark.parametrize("key", sorted(ONLY_IN_THE_FILE))
def test_what_runs_code_names_files_or_opens_the_server_is_changed_in_the_file_alone(config, own_server, key):
    for sent in ({"values": {key: None}}, {"reset": [key]}, {"values": {"min_score": 0.1, key: "x"}}):
        assert config(**sent)[0] == 403
    assert own_server.config.read_text(encoding="utf-8") == FILE


def test_the_keys_of_services_are_never_shown(config, own_server):
    own_server.configure(llm={"arguments": {"api_key": "sk-hush-1"}}, embeddings_arguments={"token": "sk-hush-2"})
    status, answer = config()
    assert status == 200
    assert "hush" not in json.dumps(answer["settings"])
    assert by_key(answer)["llm.arguments"]["value"] == {"api_key": "…"}


def test_what_a_variable_or_an_option_sets_cannot_be_changed(config, own_server, monkeypatch):
    monkeypatch.setenv("MEMORY_MCP_MIN_SCORE", "0.25")
    own_server.runtime.config.command_line["server_port"] = "--port"
    for key, by in (("min_score", "MEMORY_MCP_MIN_SCORE"), ("server_port", "--port")):
        status, answer = config(values={key: 0.5})
        assert status == 400
        assert f"is set by {by}" in answer["error"]


def test_a_change_of_a_file_that_was_changed_meanwhile_is_refused(config, own_server):
    revision = config()[1]["revision"]
    own_server.configure(min_score=0.3)
    status, answer = config(values={"min_score": 0.1}, revision=revision)
    assert status == 400
    assert "was changed meanwhile" in answer["error"]
    assert config(values={"min_score": 0.1}, revision=config()[1]["revision"])[0] == 200


def test_a_wrong_value_in_the_file_is_corrected_and_a_broken_file_is_left_alone(config, own_server):
    own_server.configure(min_score=-1)
    assert "min_score" in config()[1]["error"]
    assert config(values={"min_score": 0.1})[0] == 200
    own_server.config.write_text("{", encoding="utf-8")
    assert config(values={"min_score": 0.2})[0] == 500
    assert own_server.config.read_text(encoding="utf-8") == "{"


def test_the_file_keeps_its_permissions_and_a_link_stays_a_link(config, own_server, tmp_path):
    real = tmp_path / "elsewhere.json"
    real.write_text(FILE, encoding="utf-8")
    real.chmod(0o640)
    own_server.config.unlink()
    own_server.config.symlink_to(real)
    assert config(values={"min_score": 0.1})[0] == 200
    assert own_server.config.is_symlink()
    assert json.loads(real.read_text(encoding="utf-8"))["min_score"] == 0.1
    assert real.stat().st_mode & 0o777 == 0o640


def test_only_an_admin_of_all_personas_sees_and_changes_the_configuration(config, own_server):
    def bearer(personas, scopes):
        secret = create_token(own_server.data, name="", personas=personas, scopes=scopes, now=NOON)[1]
        return {"Authorization": f"Bearer {secret}"}

    for headers in (bearer(["nilou"], TOKEN_SCOPES), bearer(None, ["read", "write", "delete", "export"])):
        assert config(headers)[0] == 403
        assert config(headers, values={"min_score": 0.1})[0] == 403
    assert own_server.config.read_text(encoding="utf-8") == FILE
    assert config(bearer(None, ["admin"]), values={"min_score": 0.1})[0] == 200


def test_the_log_says_which_keys_were_changed_and_no_value(config, own_server):
    config(values={"timezone": "Asia/Seoul"})
    line = (own_server.data / "memory_operations.log").read_text(encoding="utf-8")
    assert '"operation": "configure"' in line
    assert '"settings": ["timezone"]' in line
    assert "Seoul" not in line
