"""`memory-mcp pack`: what is given away, what is refused, and who is believed."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import RunningServer, serving

from memory_mcp.errors import InvalidInput
from memory_mcp.store.files.signing_keys import own_key
from memory_mcp.transfer.packs import Manifest, packed, public_key_of, signed, verified

pytestmark = pytest.mark.slow

POOLS = {"京都案内": {"readers": "all"}, "shelf": {}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    config = {"embeddings_model": None, "reranker_model": None, "pools": POOLS}
    with serving(tmp_path_factory.mktemp("packs"), json.dumps(config)) as server:
        yield server


@pytest.fixture(scope="module")
def run(server: RunningServer) -> Any:
    def run(*words: str, status: int = 0) -> str:
        done = server.memory_mcp(*words)
        assert done.returncode == status, done.stderr
        return str(done.stdout + done.stderr)

    return run


def imported(run: Any, tmp_path: Path, *where: str, rows: list[dict[str, Any]]) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("import", str(file), *where)


ROWS = [
    {"content": "[[祇園|Place]]は夕方が美しい", "source": "さくら", "session_id": "line-U4af4980629", "metadata": {"user_id": "U4af4980629"}, "usage_count": 7},
    {"content": "錦市場は朝のうちに行く", "key": "nishiki", "tags": ["市場"], "relations": ["錦市場 > located_in > 京都"]},
    {"content": "古い話", "key": "old"},
    {"content": "新しい話", "supersedes": "old"},
    {"content": "合言葉は睡蓮", "privacy_level": "secret"},
]  # fmt: skip


@pytest.fixture(scope="module")
def pack(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("author")
    imported(run, directory, "--pool", "京都案内", rows=ROWS)
    file = directory / "kyoto.memorypack"
    run("pack", "make", str(file), "--pool", "京都案内", "--name", "kyoto-guide", "--signer", "さくら", "--data", str(directory))
    return file


def test_a_pack_holds_what_was_told_and_nothing_of_who_told_it_where_and_how_it_was_used(pack: Path) -> None:
    text = pack.read_text(encoding="utf-8")
    for kept_back in ("U4af4980629", "line-U", "usage_count", "合言葉", "metadata"):
        assert kept_back not in text
    head, *rows = map(json.loads, text.splitlines())
    assert head["memory_mcp_pack"]["memories"] == len([row for row in rows if "content" in row]) == 4


def test_what_was_packed_is_recalled_where_it_is_installed_and_known_the_second_time(run: Any, pack: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "friend")
    shown = run("pack", "inspect", str(pack), "--data", home)
    assert "kyoto-guide: 4 memories" in shown
    assert "never seen here, and nobody vouches for the name" in shown
    assert "4 stored" in run("pack", "install", str(pack), "-p", "nilou", "--data", home)
    again = run("pack", "install", str(pack), "-p", "nilou", "--data", home)
    assert "0 stored, 4 known already" in again
    assert "the same key as since" in again
    assert "錦市場は朝のうちに行く" in run("recall", "市場はいつ？", "-p", "nilou")
    assert "新しい話" in run("recall", "--tag", "pack:kyoto-guide", "-p", "nilou")
    assert "4 stored" in run("pack", "install", str(pack), "--pool", "shelf", "--data", home)


@pytest.mark.parametrize(
    "change", [("朝のうちに", "昼のうちに"), ('"signer": "さくら"', '"signer": "健太"'), ('"memories": 4', '"memories": 5'), ("\n", "\n\n")]
)
def test_a_pack_that_was_changed_is_no_good(pack: Path, tmp_path: Path, change: tuple[str, str]) -> None:
    text, changed = pack.read_text(encoding="utf-8"), tmp_path / "changed.memorypack"
    assert change[0] in text
    changed.write_text(text.replace(*change, 1), encoding="utf-8")
    with pytest.raises(InvalidInput, match="changed after it was signed"):
        verified(changed)


def test_nothing_of_a_changed_pack_is_installed(run: Any, pack: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.memorypack"
    changed.write_bytes(pack.read_bytes() + b'{"content": "more"}\n')
    refused = run("pack", "install", str(changed), "-p", "careful", "--data", str(tmp_path), status=1)
    assert "changed after it was signed" in refused
    assert "no persona 'careful'" in run("export", "-p", "careful", status=1)


def test_another_key_under_a_known_name_is_refused_until_somebody_trusts_it(run: Any, pack: Path, tmp_path: Path) -> None:
    home, forged = str(tmp_path / "friend"), tmp_path / "forged.memorypack"
    run("pack", "install", str(pack), "-p", "wary", "--data", home)
    other = ("--name", "kyoto-guide", "--signer", "さくら", "--data", str(tmp_path / "stranger"))
    fingerprint = run("pack", "make", str(forged), "--pool", "京都案内", *other).strip().split("(")[1].rstrip(")")
    refused = run("pack", "install", str(forged), "-p", "wary", "--data", home, status=1)
    assert f"--trust {fingerprint}" in refused
    run("pack", "install", str(forged), "-p", "wary", "--data", home, "--trust", fingerprint)


def test_private_data_are_shown_and_nothing_is_written_unless_told(run: Any, tmp_path: Path) -> None:
    rows = [{"content": "連絡先は taro@example.co.jp"}, {"content": "体重の話", "privacy_level": "private"}]
    imported(run, tmp_path, "-p", "open", rows=rows)
    file = tmp_path / "open.memorypack"
    make = ("pack", "make", str(file), "-p", "open", "--name", "open", "--signer", "x", "--data", str(tmp_path / "home"))
    told = run(*make, status=1)
    assert ("email ta…" in told, "privacy_level" in told, "taro@" in told, file.exists()) == (True, True, False, False)
    run(*make, "--with-findings")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_strangers_pack_closes_forgets_and_overwrites_nothing(run: Any, tmp_path: Path) -> None:
    imported(run, tmp_path, "-p", "owner", rows=[{"content": "大切な約束", "key": "mine"}, {"content": "日記", "key": "diary"}])
    evil = [
        {"content": "偽の約束", "supersedes": "mine"},
        {"content": "書き換えた日記", "key": "diary"},
        {"notes_of": "vault", "forget": True},
        {"pieces_of": "diary", "pieces": 0},
        {"merged_memory": "mine", "into_memory": "diary"},
        {"persona_context": {"user_info": {"name": "悪人"}}},
        {"content": "ごみ", "deleted_at": "2025-01-01T00:00:00+00:00"},
        ["no object"],
    ]
    body = "".join(json.dumps(row) + "\n" for row in evil).encode()
    key, file = own_key(tmp_path / "stranger"), tmp_path / "evil.memorypack"
    manifest = Manifest("gift", "friend", "2025-01-01", "x", 8, 8, hashlib.sha256(body).hexdigest(), public_key_of(key))
    file.write_bytes(signed(manifest, key) + body)
    assert verified(file) == manifest
    told = run("pack", "install", str(file), "-p", "owner", "--data", str(tmp_path / "home"), status=1)
    assert "1 stored, 0 known already, 1 refused" in told
    exported = [json.loads(line) for line in run("export", "-p", "owner").splitlines() if line.startswith("{")]
    assert {row["content"] for row in exported} == {"大切な約束", "日記", "偽の約束"}
    assert not [row for row in exported if row.get("supersedes")]


@pytest.mark.parametrize(
    ("content", "verdicts", "is_packed"),
    [
        ("Deploy\n1. Skip the tests", ("failed", "failed", "worked"), False),
        ("Deploy\n1. Run the tests", ("worked", "failed"), True),
        ("Deploy\nSign: the cache is stale", ("failed",), True),
    ],
)
def test_a_way_to_do_a_task_that_mostly_failed_is_not_given_away(content: str, verdicts: tuple[str, ...], is_packed: bool) -> None:
    row = {"kind": "experience", "content": content, "feedback": [{"verdict": verdict} for verdict in verdicts]}
    assert (packed(row) == {"kind": "experience", "content": content}) is is_packed
    assert (packed(row) is None) is not is_packed
