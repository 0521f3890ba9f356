"""What a server process says in its log, at its most talkative, of what it was told."""

import json

import httpx2
import pytest
from processes import serving

pytestmark = pytest.mark.slow

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
CARD = "4111 1111 1111 1111"


def test_neither_the_log_nor_any_file_of_a_server_holds_a_secret_that_it_was_told(tmp_path):
    config = '{"log_level": "debug", "embeddings_model": null, "reranker_model": null}'
    with serving(tmp_path, config=config) as server:
        stored = server.memory_mcp("remember", f"トークンは{TOKEN}、カードは{CARD}", "-p", "nilou")
        assert "  redacted: 1 api_key, 1 credit_card" in stored.stdout.splitlines()
        for arguments in (("remember", "x", "--occurred-at", TOKEN), ("recall", TOKEN), ("recall", "x", "--when", TOKEN)):
            done = server.memory_mcp(*arguments, "-p", "nilou")
            assert TOKEN not in done.stdout + done.stderr
        lines = tmp_path / "lines.jsonl"
        lines.write_text(
            json.dumps({"content": f"x {TOKEN}"}) + "\n" + json.dumps({"contents": TOKEN}) + "\n" + TOKEN + "\n", encoding="utf-8"
        )
        imported = server.memory_mcp("import", str(lines), "-p", "nilou")
        assert "redacted: 1 api_key" in imported.stdout
        assert TOKEN not in imported.stdout + imported.stderr
        lines.unlink()
        assert TOKEN not in httpx2.get(f"{server.url}/api/export?include_deleted={TOKEN}", trust_env=False).text
    written = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"server.log", "memory.sqlite", "memory_operations.log"} <= set(written)
    assert not [name for name, told in written.items() if TOKEN.encode() in told or CARD.encode() in told]
