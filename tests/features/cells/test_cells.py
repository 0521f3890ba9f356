"""A server that is one cell of many: a persona of another cell is refused at every door, and nothing of it is made."""

import json
from contextlib import ExitStack
from urllib.parse import quote

import httpx2
import pytest

from memory_mcp.client.connection import Connection
from memory_mcp.errors import MemoryMCPError, PersonaElsewhere, StartupError
from memory_mcp.personas import cells
from memory_mcp.personas.cells import Cell, owner_of
from memory_mcp.personas.registry import Personas
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow  # a server for each of most tests

OF = 4
NAMES = ["nilou", "dehya", "さくら", "a/b", "..", "con", "100%", "ＡＢＣ", "が", "é", "a?b+c", "名前 と 空白"]
HERE = 1
OWN = next(name for name in map("own{}".format, range(99)) if owner_of(name, OF) == HERE)
FOREIGN = [name for name in NAMES if owner_of(name, OF) != HERE]


@pytest.fixture
def cell(serving, tmp_path):
    (tmp_path / "memory").mkdir()
    with _cell(serving, tmp_path, HERE) as served:
        yield served


def _cell(serving, directory, index, **settings):
    return serving(directory, cell={"index": index, "of": OF, **settings})


def directories(served):
    return {entry.name for entry in served.data.iterdir() if entry.is_dir() and not entry.name.startswith(".")}


def test_the_owner_of_a_name_is_what_routers_compute():
    assert [owner_of(name, 64) for name in ("nilou", "さくら", "default")] == [39, 8, 31]


@pytest.mark.parametrize("name", FOREIGN)
def test_every_door_names_the_owner_of_a_persona_and_makes_nothing(cell, name):
    header = {"X-Persona": quote(name, safe="")}
    prefix = "/p/" + quote(name, safe="").replace(".", "%2E")  # clients resolve dots
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "remember", "arguments": {"content": "x"}}}
    accept = {"accept": "application/json, text/event-stream"}
    with httpx2.Client(base_url=cell.url, timeout=60, trust_env=False) as http:
        answers = [
            http.get("/api/stats", headers=header),
            http.get(f"{prefix}/api/stats"),
            http.post("/mcp", json=call, headers={**header, **accept}),
            http.post(f"{prefix}/mcp", json=call, headers=accept),
            http.post("/api/import", content=b'{"content": "x"}\n', headers=header),
            http.post("/api/import/file?format=text", content=b"x", headers=header),
            http.get(f"{prefix}/ui"),
            http.get(f"{prefix}/ui/memories"),
        ]
    assert [(answer.status_code, answer.headers.get("x-persona-cell")) for answer in answers] == [(421, str(owner_of(name, OF)))] * len(
        answers
    )
    assert directories(cell) == set()


def test_a_persona_of_this_cell_is_served(cell, connect):
    caller = connect(cell, OWN)
    assert caller("remember", content="睡蓮の踊り")["stored"]
    assert caller("recall", query="睡蓮")["hits"]
    assert len(directories(cell)) == 1


def test_no_operation_makes_a_persona_of_another_cell(cell, connect):
    connect(cell, OWN)("remember", content="x")
    with httpx2.Client(base_url=cell.url, timeout=60, trust_env=False, headers={"X-Persona": OWN}) as http:
        for path, body in (("rename", {"to": FOREIGN[0]}), ("copy", {"to": FOREIGN[0]}), ("merge", {"into": FOREIGN[0]})):
            assert http.post(f"/api/persona/{path}", json=body).status_code == 421
        assert [listed["name"] for listed in http.get("/api/personas").json()["personas"]] == [OWN]
    assert len(directories(cell)) == 1


def test_the_registry_itself_lets_no_name_of_another_cell_become_a_persona(tmp_path):
    personas = Personas(tmp_path / "memory", cell=Cell(HERE, OF))
    ways = (personas.reading, personas.writing, personas.absent)
    for way in ways:
        with pytest.raises(PersonaElsewhere), way(FOREIGN[0]):
            pass
    for way in (personas.exists, personas.path_of):
        with pytest.raises(PersonaElsewhere):
            way(FOREIGN[0])
    personas.close()


def test_a_token_of_one_persona_leads_to_its_cell_without_a_name(cell):
    secret = create_token(cell.data, name="one", personas=[FOREIGN[0]], scopes=["read"], now=cell.clock())[1]
    with httpx2.Client(base_url=cell.url, timeout=60, trust_env=False, headers={"Authorization": f"Bearer {secret}"}) as http:
        answer = http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers={"accept": "application/json"})
        assert (answer.status_code, answer.headers["x-persona-cell"]) == (421, str(owner_of(FOREIGN[0], OF)))
        assert http.get("/health").status_code == 200
        assert http.get("/api/personas").status_code == 200


def test_our_clients_follow_a_refusal_to_the_owner(serving, tmp_path):
    with ExitStack() as stack:
        first, second = tmp_path / "a", tmp_path / "b"
        first.mkdir()
        second.mkdir()
        owner = stack.enter_context(_cell(serving, first, HERE))
        server = stack.enter_context(_cell(serving, second, 2, address=f"http://127.0.0.{{cell}}:{owner.port}"))
        connection = Connection(server.url, persona=OWN)
        assert connection.import_rows([json.dumps({"content": "睡蓮の踊り"}).encode()])["stored"] == 1
        assert connection.call_tool("recall", {"query": "睡蓮"})["hits"]
        assert connection.get_json("/api/stats")["persona"] == OWN
        assert directories(server) == set()


def test_a_refusal_without_an_address_is_shown(cell):
    with pytest.raises(MemoryMCPError, match=f"it belongs to cell {owner_of(FOREIGN[0], OF)} of {OF}"):
        Connection(cell.url, persona=FOREIGN[0]).get_json("/api/stats")


def test_a_directory_remembers_which_cell_it_is(tmp_path):
    directory = tmp_path / "memory"
    Personas(directory, cell=Cell(HERE, OF)).close()
    with pytest.raises(StartupError, match="is cell 1 of 4"):
        Personas(directory, cell=Cell(2, OF))
    with pytest.raises(StartupError, match="the configuration says the only cell"):
        Personas(directory, cell=Cell())
    offline = Personas(directory)
    with pytest.raises(PersonaElsewhere):
        offline.exists(FOREIGN[0])
    offline.close()


def test_a_directory_with_other_personas_does_not_become_a_cell(tmp_path):
    directory = tmp_path / "memory"
    personas = Personas(directory)
    with personas.writing(FOREIGN[0]):
        pass
    personas.close()
    with pytest.raises(StartupError, match="1 of its personas belong to other cells"):
        Personas(directory, cell=Cell(HERE, OF))
    assert cells.read(directory) == {"index": 0, "of": 1}
    Personas(directory).close()  # the lock is free
