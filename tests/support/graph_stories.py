"""Stories of a persona's graph: rows of steps, each a call or what is told then. `told(name, type="Person")` is a step, `each(it)` does it to `it`."""

import functools
import json

import pytest

from memory_mcp.graph.update.cooccurrence import update_graph

# All that an export may hold.
WHOLE = dict.fromkeys(("include_deleted", "include_secret", "include_versions"), "true")


class Told:
    """A persona as the steps of a story see it: what it remembers by number, its merges, and the persona to which it is moved."""

    def __init__(self, persona, api, http, erase, server, name):
        self.persona, self.api, self.http, self.erase, self.server, self.name = persona, api, http, erase, server, name
        self.keys, self.merges = [], []

    def does(self, *steps):
        for step in steps:
            step(self)

    def entity(self, name, who=None):
        """Whom a name means, as the route tells it; of the persona itself, the tool tells the same."""
        told = self.api("GET", "entity", who or self.name, entity=name)["entity"]
        if who is None:
            assert self.persona("entity_neighbors", entity=name)["entity"] == told
        return told

    def listed(self, query, who=None):
        found = self.api("GET", "entities", who or self.name, query=query)
        assert found["in_all"] == len(found["entities"])
        return [(one["name"], one["type"], one.get("mentions", 0)) for one in found["entities"]]

    def exported(self, who=None, **asked):
        answer = self.http.get("/api/export", params=asked, headers={"X-Persona": who or self.name})
        assert answer.status_code == 200, answer.text
        return answer.content

    def imported(self, lines, who=None):
        answer = self.http.post("/api/import", content=lines, headers={"X-Persona": who or self.name}).json()
        assert answer["refused"] == 0, answer
        return answer


@pytest.fixture
def it(persona, api, http, erase, server, name):
    return Told(persona, api, http, erase, server, name)


def step(function):
    """A step of a story: what it is called with now is done to the persona of the test later."""
    return functools.wraps(function)(lambda *args, **kwargs: lambda it: function(it, *args, **kwargs))


@step
def say(it, *contents, **fields):
    it.keys += [it.persona("remember", content=content, **fields)["key"] for content in contents]


@step
def forget(it, *numbers):
    it.persona("forget", keys=[it.keys[number] for number in numbers])


@step
def restore(it, *numbers):
    for number in numbers:
        it.persona("revise", key=it.keys[number], restore=True)


@step
def erased(it, number):
    it.erase(it.keys[number])


@step
def revise(it, number, **fields):
    it.persona("revise", key=it.keys[number], **fields)


@step
def woven(it):
    """What the background does: entities of sources and tags."""
    with it.server.runtime.personas.writing(it.name) as persona:
        while update_graph(persona, it.server.clock()):
            pass


@step
def relate(it, *relations):
    it.persona("relate", relations=list(relations))


@step
def unrelate(it, relation):
    assert it.persona("unrelate", relation=relation)["unrelated"] is True


@step
def create(it, called, /, **fields):
    it.api("POST", "entities", name=called, **fields)


@step
def change(it, entity, /, unsaid="", **fields):
    told = json.dumps(it.api("PATCH", "entity", entity=entity, **fields), ensure_ascii=False)
    assert not unsaid or unsaid not in told


@step
def merge(it, entity, into, /, unsaid="", **expected):
    answer = it.persona("merge_entities", entity=entity, into=into)
    assert not unsaid or unsaid not in json.dumps(answer, ensure_ascii=False)
    it.merges.append(answer["merge"])
    assert {field: answer["into"][field] for field in expected} == expected


@step
def undo(it, number=0, unsaid=""):
    undone = json.dumps(it.persona("merge_entities", undo=it.merges[number]), ensure_ascii=False)
    assert not unsaid or unsaid not in undone


@step
def merged(it, *expected):
    """The merges that are listed, as who was made one with whom."""
    for merges in (it.persona("merge_entities")["merges"], it.api("GET", "merges", it.name)["merges"]):
        assert [(one["entity"], one["into"]) for one in merges] == list(expected)


@step
def neighbors(it, entity, *expected):
    assert [near["name"] for near in it.persona("entity_neighbors", entity=entity)["neighbors"]] == list(expected)


@step
def told(it, called, /, unsaid="", **expected):
    """`called` means an entity of these fields; `others` are the names of its namesakes."""
    assert not unsaid or unsaid not in json.dumps(it.api("GET", "entity", it.name, entity=called), ensure_ascii=False)
    if "others" in expected:
        namesakes = it.persona("entity_neighbors", entity=called).get("namesakes", [])
        assert [other["name"] for other in namesakes] == expected.pop("others")
    entity = it.entity(called)
    assert {field: entity.get(field, []) for field in expected} == expected


@step
def listed(it, query, *expected):
    """The entities whose names hold `query`: their names, or each with its type and how many memories name it."""
    found = sorted(it.listed(query))
    assert (found if expected and isinstance(expected[0], tuple) else [name for name, *_ in found]) == list(expected)


@step
def proposed(it, *expected):
    told = it.persona("merge_entities")
    assert [{one["entity"], one["into"]} for one in told["proposals"]] == list(expected)
    assert told["proposals_in_all"] == len(expected)


@step
def recalled(it, query, *expected, **asked):
    hits = it.persona("recall", query=query, **asked)
    assert [hit["content"] for hit in hits["hits"]] == list(expected)
    assert expected or not hits.get("relations")


@step
def known(it, relation, query):
    """A recall tells the relation."""
    assert relation in json.dumps(it.persona("recall", query=query), ensure_ascii=False)


@step
def refused(it, tool, words="", unsaid=(), **arguments):
    said = it.persona.refusal(tool, **arguments)
    assert words in said
    assert not [word for word in unsaid if word in said]


@step
def copied(it, *queries, counted=True):
    """Moved whole to another persona, the graph is the same there, and so is its export."""
    there = f"{it.name}-copy"
    first = it.exported(**WHOLE)
    it.imported(first, there)
    for query in queries:
        here, moved = sorted(it.listed(query)), sorted(it.listed(query, there))
        assert (moved if counted else [one[:2] for one in moved]) == (here if counted else [one[:2] for one in here])
    facts = [
        [line for line in map(json.loads, lines.splitlines()) if "content" not in line] for lines in (first, it.exported(there, **WHOLE))
    ]
    assert facts[0] == facts[1]
