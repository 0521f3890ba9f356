"""Every way in which index.faiss and manifest.json can be wrong, each on a persona of its own, under one real server."""

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashing import INDEXED, crashing
from figures import Figure
from processes import RunningServer
from soundness import index_differences
from writers import Caller, settle

from memory_mcp.store.vectors.faiss_index import VectorIndex

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MEMORIES = 40
QUERIES = ("海辺", "山小屋で紅茶", "舞台")

Harm = Callable[[Path, Path], object]


def flip(file: Path, share: float) -> None:
    """Turns one bit over."""
    content = bytearray(file.read_bytes())
    content[int((len(content) - 1) * share)] ^= 1 << random.Random(share).randrange(8)
    file.write_bytes(content)


def told(directory: Path, **changes: object) -> None:
    """A manifest that is right but for some values."""
    manifest = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps({**manifest, **changes}))


def of_other_dimension(directory: Path, _other: Path) -> None:
    """A sound index of vectors that are too short, with a manifest that agrees with it."""
    index = VectorIndex("hashing", 0)
    index.add([1, 2, 3], np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], np.float32))
    with (directory / "index.faiss").open("wb") as file:
        index.write_to(file)
    told(directory, dimension=2, count=3, sha256=hashlib.sha256((directory / "index.faiss").read_bytes()).hexdigest())


def anothers(directory: Path, other: Path) -> None:
    """Both files of another persona."""
    for name in ("index.faiss", "manifest.json"):
        shutil.copy(other / name, directory / name)


def anothers_under_its_name(directory: Path, other: Path) -> None:
    """Both files of another persona, made to say that they are this one's."""
    anothers(directory, other)
    told(directory, persona=directory.parent.name)


# What is done to (vector_store of this persona, vector_store of another).
HARMS: Mapping[str, Harm] = {
    "index-missing": lambda d, _: (d / "index.faiss").unlink(),
    "both-missing": lambda d, _: shutil.rmtree(d),
    "index-empty": lambda d, _: (d / "index.faiss").write_bytes(b""),
    "index-truncated-to-half": lambda d, _: (d / "index.faiss").write_bytes((d / "index.faiss").read_bytes()[: 40 * MEMORIES]),
    "index-lacks-its-last-byte": lambda d, _: (d / "index.faiss").write_bytes((d / "index.faiss").read_bytes()[:-1]),
    "index-is-text": lambda d, _: (d / "index.faiss").write_text("ない" * 1_000),
    "index-bit-in-the-head": lambda d, _: flip(d / "index.faiss", 0.0),
    "index-bit-in-the-middle": lambda d, _: flip(d / "index.faiss", 0.5),
    "index-bit-at-the-end": lambda d, _: flip(d / "index.faiss", 1.0),
    "index-of-another": lambda d, other: shutil.copy(other / "index.faiss", d / "index.faiss"),
    "both-of-another": anothers,
    "both-of-another-renamed": anothers_under_its_name,
    "other-dimension": of_other_dimension,
    "manifest-missing": lambda d, _: (d / "manifest.json").unlink(),
    "manifest-empty": lambda d, _: (d / "manifest.json").write_bytes(b""),
    "manifest-truncated": lambda d, _: (d / "manifest.json").write_bytes((d / "manifest.json").read_bytes()[:60]),
    "manifest-is-a-list": lambda d, _: (d / "manifest.json").write_text("[1, 2]"),
    "manifest-not-utf8": lambda d, _: (d / "manifest.json").write_bytes(b"\xff\xfe" * 50),
    "manifest-other-count": lambda d, _: told(d, count=7),
    "manifest-other-dimension": lambda d, _: told(d, dimension=768),
    "manifest-other-types": lambda d, _: told(d, change="x", count=None, sha256=5),
    "manifest-of-another": lambda d, other: shutil.copy(other / "manifest.json", d / "manifest.json"),
    "both-are-directories": lambda d, _: [((d / name).unlink(), (d / name).mkdir()) for name in ("index.faiss", "manifest.json")],
}
# What needs no repair, or leaves nothing to set aside.
QUIET = {"index-missing", "both-missing"}


def answers(server: RunningServer, persona: str) -> list[Any]:
    with Caller(server, persona) as caller:
        found = [caller("recall", query=query, mode="semantic", top_k=10) for query in QUERIES]
    return [[(answer["mode"], answer["degraded"]), *(hit["content"] for hit in answer["hits"])] for answer in found]


def test_whatever_is_wrong_with_an_index_it_is_set_aside_made_again_without_the_model_and_said(tmp_path: Path, figure: Figure) -> None:
    embedded = tmp_path / "embedded"
    settings = {**INDEXED, "embeddings_arguments": {"dimension": 32, "progress_file": str(embedded)}}
    names = [*HARMS, "intact"]
    with crashing(tmp_path, settings) as server:
        for name in names:
            places = [f"{name}の{place}{number}" for number in range(MEMORIES // 4) for place in ("海辺", "山小屋", "舞台", "紅茶")]
            with Caller(server, name) as caller:
                caller.imported("".join(json.dumps({"content": content}) + "\n" for content in places).encode())
        settle(server)
        before = {name: answers(server, name) for name in names}
        assert server.stop() == 0
    for name, harm in HARMS.items():
        harm(server.data / name / "vector_store", server.data / "intact" / "vector_store")
    embedded.write_text("")

    with crashing(tmp_path, settings) as server:
        settle(server)
        after = {name: answers(server, name) for name in names}
        with Caller(server, "intact") as caller:
            repaired = caller.get("/ready").json()["index"]["repaired"]
        assert server.stop() == 0
    survived = [name for name in HARMS if after[name] == before[name]]
    figure("index faults injected", len(HARMS))
    figure("index faults survived, with every answer as before", len(survived))
    assert survived == list(HARMS)
    assert after["intact"] == before["intact"]
    assert [text for text in embedded.read_text(encoding="utf-8").splitlines() if any(name in text for name in names)] == []
    assert set(repaired) == set(HARMS) - QUIET
    log = server.log.read_text(encoding="utf-8")
    assert [name for name in HARMS if name not in QUIET and f"the vector index of {name} is set aside (" not in log] == []
    assert "Traceback" not in log
    assert index_differences(server.data) == {}
