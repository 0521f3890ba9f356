"""The graph as a file: whoever reads it back has the same graph, and nothing that is secret leaves by accident."""

import io
import json

import networkx
import pytest
import rustworkx

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import StatedRelation
from memory_mcp.features.graph.entity_edits import change, merge_entities
from memory_mcp.features.graph.relation_edits import relate, unrelate
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.remember.forget import forget
from memory_mcp.store.graph.entities.editing import EntityChange
from memory_mcp.store.graph.transfer import graph_export
from memory_mcp.transfer.graph_export import REPLACEMENT, graphml, node_link

HOSTILE = "<田中> & \"鈴木\" 'x' ]]> \u0001\ufffe\u2028\r\n\t終"


@pytest.fixture
def written(nilou, now):
    """Both forms of the graph, as networkx has them after reading."""

    def written(**wanted):
        while update_graph(nilou, now):
            pass
        text = "".join(graphml(nilou, **wanted))
        by_xml = networkx.read_graphml(io.BytesIO(text.encode()), force_multigraph=True)
        by_json = networkx.node_link_graph(json.loads("".join(node_link(nilou, **wanted))), edges="edges")
        return by_xml, by_json

    return written


def links(graph):
    names = {node: told["name"] for node, told in graph.nodes(data=True)}
    return sorted((names[one], told["type"], names[other], told["weight"]) for one, other, told in graph.edges(data=True))


def test_what_is_read_back_is_the_graph(say, written, nilou):
    say("田中さんがプロジェクトAの担当になった", relations=["田中|Person > works_on > プロジェクトA|Task"])
    say("プロジェクトAの締切は10月17日")
    expected = [
        ("プロジェクトA", "co_occurrence", "2025-10-17", 0.2),
        ("田中", "co_occurrence", "プロジェクトA", 0.2),
        ("田中", "works_on", "プロジェクトA", 0.8),
    ]
    for graph in written():
        assert graph.is_directed()
        assert links(graph) == sorted(expected)
        told = next(told for _, told in graph.nodes(data=True) if told["name"] == "田中")
        assert (told["type"], told["mentions"], told["color"]) == ("Person", 1, "#e4572e")
        assert {told["directed"] for *_, told in graph.edges(data=True)} == {True, False}


def test_rustworkx_reads_it_too(say, written, nilou, tmp_path):
    say("田中さんと鈴木さんが来た", relations=["田中 > knows > 鈴木"])
    file = tmp_path / "graph.graphml"
    file.write_text("".join(graphml(nilou)), encoding="utf-8")
    (graph,) = rustworkx.read_graphml(str(file))
    assert {node["name"] for node in graph.nodes()} == {"田中", "鈴木"}
    assert [edge["type"] for edge in graph.edges()] == ["knows"]


def test_names_come_through_whatever_characters_they_hold(written, nilou, now):
    relate(nilou, [StatedRelation(HOSTILE, "knows", "🌸さくら"), StatedRelation("🌸さくら", "a<b&c", HOSTILE)], now=now, privacy=Privacy())
    by_xml, by_json = written()
    names = {told["name"] for _, told in by_xml.nodes(data=True)}
    assert names == {HOSTILE.replace("\u0001", REPLACEMENT).replace("\ufffe", REPLACEMENT), "🌸さくら"}
    assert {told["name"] for _, told in by_json.nodes(data=True)} == {HOSTILE, "🌸さくら"}
    assert {told["type"] for *_, told in by_xml.edges(data=True)} == {"knows", "a<b&c"}


def test_a_graph_of_several_pages_is_whole_and_an_empty_one_is_a_file_too(written, nilou, now):
    assert all(len(graph) == 0 for graph in written())
    many = graph_export.PAGE + 20
    for begin in range(0, many, 50):
        relate(
            nilou,
            [StatedRelation(f"人{number}", "knows", f"人{number + 1}") for number in range(begin, min(begin + 50, many))],
            now=now,
            privacy=Privacy(),
        )
    for graph in written():
        assert (len(graph), graph.size()) == (many + 1, many)


def test_what_only_secret_memories_speak_of_stays_unless_it_is_asked_for(say, written):
    say("[[青木|Person]]は[[田中|Person]]の友だち", relations=["青木 > knows > 田中"])
    say("[[内緒の人|Person]]と[[田中|Person]]。[[田中|たなっち]]と呼ぶ", relations=["内緒の人 > loves > 田中"], privacy_level="secret")
    for graph in written():
        assert {told["name"] for _, told in graph.nodes(data=True)} == {"青木", "田中"}
        assert {link[1] for link in links(graph)} == {"knows", "co_occurrence"}
        assert not [told for _, told in graph.nodes(data=True) if "たなっち" in told.get("aliases", "")]
    for graph in written(include_secret=True):
        assert {told["name"] for _, told in graph.nodes(data=True)} == {"青木", "田中", "内緒の人"}
        assert "loves" in {link[1] for link in links(graph)}
        assert [told for _, told in graph.nodes(data=True) if "たなっち" in told.get("aliases", "")]


def test_what_somebody_did_by_hand_takes_nothing_secret_along(say, written, nilou, now):
    say("[[内緒の人|Person]]と[[花子|Person]]", privacy_level="secret", relations=["内緒の人 > loves > 花子"])
    say("[[田中|Person]]と花子が来た")
    say("[[田中|たなっち]]と[[隠れ名|Person]]のこと", privacy_level="secret")
    unrelate(nilou, StatedRelation("内緒の人", "loves", "花子"), reason=None, now=now, privacy=Privacy())
    change(nilou, "内緒の人", EntityChange(importance=0.9), now=now, privacy=Privacy())
    change(nilou, "田中", EntityChange(description="隣の人"), now=now, privacy=Privacy())
    merge_entities(nilou, "隠れ名", "田中", reason=None, now=now, privacy=Privacy())
    for graph in written():
        told = {told["name"]: told for _, told in graph.nodes(data=True)}
        assert told.keys() == {"田中", "花子"}
        assert told["田中"]["description"] == "隣の人"
        assert "aliases" not in told["田中"]
    for graph in written(include_secret=True):
        assert {told["name"] for _, told in graph.nodes(data=True)} == {"田中", "花子", "内緒の人"}


def test_a_name_that_only_a_secret_memory_in_the_trash_holds_stays(say, written, nilou, now):
    say("[[田中|Person]]が来た")
    key = say("[[田中|たなっち]]と呼ぶ", privacy_level="secret").key
    forget(nilou, [key], reason=None, dry_run=False, now=now, privacy=Privacy())
    for graph in written():
        assert [told.get("aliases") for _, told in graph.nodes(data=True)] == [None]
