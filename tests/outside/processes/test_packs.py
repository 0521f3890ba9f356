"""`memory-mcp pack`: what is given away, what is refused, and who is believed."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from processes import RunningServer, serving

from memory_mcp.errors import InvalidInput
from memory_mcp.features.pools.archive import Packing, packed, public_key_of, signed, verified
from memory_mcp.store.files.signing_keys import own_key

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


def packed_by(home: Path, rows: list[Any], *, name: str = "gift", signer: str = "friend") -> Path:
    """A signed file of these lines, whatever they are."""
    body, key = "".join(json.dumps(row) + "\n" for row in rows).encode(), own_key(home)
    counts = {"lines": len(rows), "memories": len(rows), "sha256": hashlib.sha256(body).hexdigest()}
    tree = {
        "name": name,
        "signer": signer,
        "made_at": "2025-01-01",
        "made_by": "x",
        **counts,
        "public_key": public_key_of(key),
        "format": 1,
    }
    file = home / f"{len(list(home.iterdir()))}.memorypack"
    file.write_bytes(signed(tree, key) + body)
    return file


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
    file = packed_by(tmp_path / "stranger", evil)
    told = run("pack", "install", str(file), "-p", "owner", "--data", str(tmp_path / "home"), status=1)
    assert "1 stored, 0 known already, 1 refused" in told
    exported = [json.loads(line) for line in run("export", "-p", "owner").splitlines() if line.startswith("{")]
    assert {row["content"] for row in exported} == {"大切な約束", "日記", "偽の約束"}
    assert not [row for row in exported if row.get("supersedes")]


MINE: list[dict[str, Any]] = [
    {"entity": "健太", "type": "Person", "aliases": ["けんた"]},
    {"content": "大切な約束", "key": "mine"},
    {"content": "もう一つの約束", "key": "taken"},
    {"content": "健太は喫茶店にいる", "key": "stated", "relations": ["健太 > works_at > 喫茶店"]},
    {"relation": "knows", "source": "健太", "target": "凛", "valid_from": "2020-01-01", "notes": "学生のころから", "weight": 0.5},
    {"relation": "好き", "source": "健太", "target": "苺"},
]
THEIRS: list[dict[str, Any]] = [
    {"entity": "健太", "type": "Person", "aliases": ["わたし"], "description": "嘘つき", "subtype": "悪人", "importance": 1.0},
    {"entity": "健太", "type": "Organization", "aliases": ["わたし"]},
    {"entity": "偽者", "type": "Person", "aliases": ["けんた", "偽さん"]},
    {"relation_type": "好き", "directed": False},
    {"content": "健太は銀行にいる", "key": "newer", "supersedes": "mine"},
    {"content": "[[偽者]]が来た", "key": "came"},
    {"content": "大切な約束", "key": "mine"},
    {"content": "書き換えた約束", "key": "taken"},
    {"content": "偽の約束", "key": "last", "supersedes": "taken"},
    {"content": "健太の仕事", "key": "work", "relations": ["健太|Organization > works_at > 喫茶店", "健太 > works_at > 銀行"]},
    {"relation": "knows", "source": "健太", "target": "凛", "valid_to": "2020-12-31", "notes": "縁を切った", "weight": 1.0},
    {"relation": "knows", "source": "健太", "source_type": "Organization", "target": "凛", "valid_to": "2020-12-31"},
    {"relation": "knows", "source": "健太", "target": "葵"},
]


def test_what_a_strangers_pack_says_of_my_memories_and_of_those_i_know_changes_none_of_it(
    run: Any, server: RunningServer, tmp_path: Path
) -> None:
    imported(run, tmp_path, "-p", "mind", rows=MINE)

    def told() -> dict[str, Any]:
        return {row["key"]: row for row in map(json.loads, run("export", "-p", "mind").splitlines()) if "key" in row}

    def graph() -> tuple[dict[str, Any], list[Any]]:
        tree = httpx2.get(f"{server.url}/api/graph/export?format=json", headers={"X-Persona": "mind"}).json()
        named = {
            node["id"]: {name: node.get(name) for name in ("name", "type", "subtype", "description", "aliases", "importance")}
            for node in tree["nodes"]
        }
        return named, [edge for edge in tree["edges"] if edge["type"] != "co_occurrence"]

    before, (known, stated) = told(), graph()
    file = packed_by(tmp_path / "stranger", THEIRS)
    run("pack", "install", str(file), "-p", "mind", "--data", str(tmp_path / "home"), "--dry-run", status=1)
    assert (told(), graph()) == (before, (known, stated))
    answer = run("pack", "install", str(file), "-p", "mind", "--data", str(tmp_path / "home"), status=1)
    assert "4 stored, 6 known already, 1 refused" in answer
    assert {key: row for key, row in told().items() if key in before} == before
    assert not [row for row in told().values() if row.get("supersedes")]
    nodes, edges = graph()
    assert {id_: node for id_, node in nodes.items() if id_ in known} == known
    assert [node["name"] for node in nodes.values()].count("健太") == 1
    assert [node["aliases"] for node in nodes.values() if node["name"] == "偽者"] == [["偽さん"]]
    assert [edge for edge in edges if edge in stated] == stated
    added = {(nodes[edge["source"]]["name"], edge["type"], nodes[edge["target"]]["name"]) for edge in edges if edge not in stated}
    assert added == {("健太", "works_at", "銀行"), ("健太", "knows", "葵")}


def test_a_later_pack_of_the_same_signer_replaces_what_the_earlier_one_brought_and_nobody_else_does(run: Any, tmp_path: Path) -> None:
    first = [{"content": "新しい噂", "key": "new", "supersedes": "old"}, {"content": "古い噂", "key": "old"}]
    later = [*first, {"content": "最新の噂", "key": "newest", "supersedes": "new"}]
    forged = [*first, {"content": "偽の噂", "key": "fake", "supersedes": "new"}]

    def current() -> str:
        return str(run("recall", "噂", "-p", "series"))

    author, stranger, home = tmp_path / "author", tmp_path / "stranger", str(tmp_path / "home")
    run("pack", "install", str(packed_by(author, first)), "-p", "series", "--data", home)
    assert ("新しい噂" in current(), "古い噂" in current()) == (True, False)
    run("pack", "install", str(packed_by(stranger, forged, signer="someone")), "-p", "series", "--data", home)
    assert "新しい噂" in current()
    run("pack", "install", str(packed_by(author, later)), "-p", "series", "--data", home)
    assert ("最新の噂" in current(), "新しい噂" in current()) == (True, False)


@pytest.mark.parametrize(
    "name", ["さ\u200bくら", "さくら\u2060", "\x1b[31mさくら", "さくら\n", "", "\u202eらくさ", 7, "x" * 101, "さくら\u034f", None]
)
def test_a_pack_whose_names_can_not_be_seen_as_they_are_is_no_good(tmp_path: Path, name: Any) -> None:
    for field in ("name", "signer"):
        with pytest.raises(InvalidInput, match="empty, too long or invisible"):
            verified(packed_by(tmp_path / "stranger", [], **{field: name}))


@pytest.mark.parametrize("alike", ["ＳＡＫＵＲＡ", "sakura\ufe0f", "sаkurа", "Sakura", "sakura ", "s a k u r a"])
def test_a_name_that_looks_like_a_known_signer_with_another_key_is_refused(run: Any, tmp_path: Path, alike: str) -> None:
    home, rows = str(tmp_path / "home"), [{"content": "話"}]
    run("pack", "install", str(packed_by(tmp_path / "author", rows, signer="sakura")), "-p", "wary", "--data", home)
    file = packed_by(tmp_path / "stranger", rows, signer=alike)
    answer = run("pack", "install", str(file), "-p", "wary", "--data", home, status=1)
    assert "--trust" in answer or "invisible" in answer


@pytest.mark.parametrize(
    "row",
    [
        {"content": "話", "key": "mail_taro@example.co.jp"},
        {"content": "話", "key": "tel_090-1234-5678"},
        {"content": "話", "tags": ["taro@example.co.jp"]},
        {"content": "話", "state": {"environment": "taro@example.co.jp"}},
        {"content": "話", "questions": ["taro@example.co.jp ?"]},
        {"content": "話", "relations": ["健太 > mail > taro@example.co.jp"]},
        {"entity": "健太", "aliases": ["taro@example.co.jp"]},
        {"entity": "taro@example.co.jp"},
        {"relation": "knows", "source": "健太", "target": "凛", "notes": "taro@example.co.jp"},
        {"relation": "taro@example.co.jp", "source": "健太", "target": "凛"},
        {"relation_type": "r", "display_name": "taro@example.co.jp"},
    ],
)
def test_private_data_are_found_in_every_field_of_a_pack(row: dict[str, Any]) -> None:
    packing = Packing()
    list(packing.lines([json.dumps(row).encode()]))
    assert {finding.kind for finding in packing.findings} <= {"email", "phone"}
    assert packing.findings


def test_the_keys_that_the_server_makes_are_no_private_data() -> None:
    packing = Packing()
    rows = [{"content": "話", "key": f"memory_2025103{day}1{day}0000_dl7pzp{day}o"} for day in range(10)]
    list(packing.lines([json.dumps(row).encode() for row in rows]))
    assert packing.findings == []


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
