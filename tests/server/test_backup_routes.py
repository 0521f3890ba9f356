"""Backups over HTTP: made on the server's disk while it serves, listed, and for its owner alone."""

import json

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.store.files.access_tokens import create_token
from memory_mcp.upkeep.backup import Backups


def test_a_backup_is_made_and_listed(own_server, own_http):
    own_http.post("/api/import", content='{"content": "抹茶が好き"}', headers={"X-Persona": "nilou"}).raise_for_status()
    made = own_http.post("/api/backups", headers={"X-Persona": "nilou"}).raise_for_status().json()
    listed = own_http.get("/api/backups", headers={"X-Persona": "nilou"}).raise_for_status().json()
    assert listed["backups"] == [made]
    assert listed["directory"] == str(own_server.data / ".backups")
    assert made["persona"] == "nilou"
    assert made["made_at"].endswith("+09:00")
    assert (own_server.data / ".backups" / "nilou" / made["file"]).stat().st_size == made["bytes"]


def test_a_persona_that_does_not_exist_has_no_backup_and_is_not_created(own_server, own_http):
    made = own_http.post("/api/backups", headers={"X-Persona": "nobody"})
    assert (made.status_code, made.json()["error"]) == (404, "there is no persona 'nobody'.")
    assert own_http.get("/api/backups", headers={"X-Persona": "nobody"}).json()["backups"] == []
    assert not (own_server.data / "nobody").exists()


def test_backups_are_for_tokens_that_run_the_server_and_for_their_personas(own_server, own_http):
    """A persona that is not the token's is answered like one that does not exist."""
    for name in ("alice", "bob"):
        own_http.post("/api/import", content='{"content": "抹茶"}', headers={"X-Persona": name}).raise_for_status()
        own_http.post("/api/backups", headers={"X-Persona": name}).raise_for_status()
    now = own_server.runtime.clock()
    owner, reader = (
        create_token(own_server.data, name="", personas=["alice"], scopes=scopes, now=now)[1]
        for scopes in (TOKEN_SCOPES, ("read", "export"))
    )
    for method, token, persona, status in (
        ("GET", reader, "alice", 403),
        ("POST", reader, "alice", 403),
        ("POST", owner, "alice", 200),
        ("POST", owner, "bob", 404),
    ):
        headers = {"Authorization": f"Bearer {token}", "X-Persona": persona}
        assert own_http.request(method, "/api/backups", headers=headers).status_code == status, (method, persona)
    listed = own_http.get("/api/backups", headers={"Authorization": f"Bearer {owner}", "X-Persona": "bob"}).json()
    assert listed["backups"] == []


def test_a_backup_that_can_t_be_written_says_so(own_server, own_http, tmp_path):
    own_http.post("/api/import", content='{"content": "抹茶が好き"}').raise_for_status()
    (tmp_path / "a file").write_text("")
    own_server.config.write_text(
        json.dumps({"embeddings_model": None, "reranker_model": None, "backup": {"directory": str(tmp_path / "a file")}})
    )
    answer = own_http.post("/api/backups")
    assert answer.status_code == 500
    assert "can't be written" in answer.json()["error"]
    assert Backups(own_server.data, own_server.runtime.personas.keys).listed(own_server.runtime.config.current()) == []
