"""Four cells behind a real HAProxy with the configuration that `memory-mcp cell haproxy` prints."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from urllib.parse import quote

import httpx2
import pytest
from hostile_names import addressed_or_none, canonical_or_none, changed_names

from memory_mcp.errors import InvalidInput
from memory_mcp.features.cells.router_files import haproxy
from memory_mcp.personas.cells import owner_of
from memory_mcp.server.addressing import MANAGEMENT
from memory_mcp.store import memories
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow

OF = 4
CALLERS = 6
needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed: apt-get install haproxy")
TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
ACCEPT = {"accept": "application/json, text/event-stream"}


class Cells:
    """The four servers, and the address of the router before them."""

    def __init__(self, servers, stops, url):
        self.servers, self.stops, self.url = servers, stops, url

    def personas(self):
        """(cell, name, memories) of every persona on any disk."""
        for index, served in enumerate(self.servers):
            for name in served.runtime.personas.names():
                with served.runtime.personas.reading(name) as persona, persona.database.read() as connection:
                    yield index, name, memories.counts(connection)["memories"]


@contextmanager
def routed(serving, directory):
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        servers, stops = [], []
        for index in range(OF):
            (directory / str(index)).mkdir()
            stops.append(stack.enter_context(ExitStack()))
            cell = {"index": index, "of": OF, "address": url + "/cell/{cell}"}
            servers.append(stops[-1].enter_context(serving(directory / str(index), cell=cell)))
        made = haproxy(OF, "127.0.0.1:{cell}", f"fd@{listener.fileno()}", "personas")
        for index, served in enumerate(servers):
            made = made.replace(f"127.0.0.1:{index}\n", f"127.0.0.1:{served.port}\n")
        (directory / "haproxy.cfg").write_text(made, encoding="utf-8")
        # As a daemon it returns when it listens.
        command = ["haproxy", "-D", "-f", str(directory / "haproxy.cfg"), "-p", str(directory / "pid")]
        subprocess.run(command, check=True, pass_fds=[listener.fileno()], timeout=60)
        stack.callback(lambda: os.kill(int((directory / "pid").read_text()), signal.SIGTERM))
        yield Cells(servers, stops, url)


@pytest.fixture(scope="module")
def cells(serving, tmp_path_factory):
    """Those that the tests of this module share: each uses personas of its own."""
    with routed(serving, tmp_path_factory.mktemp("cells")) as shared:
        yield shared


@pytest.fixture
def own_cells(serving, tmp_path):
    with routed(serving, tmp_path) as own:
        yield own


def http_of(cells, **headers):
    return httpx2.Client(base_url=cells.url, timeout=60, trust_env=False, headers=headers)


@needs_haproxy
@pytest.mark.parametrize("name", ["nilou", "さくら", "a/b", "..", "100%", "a+b", "a?b+c", "%zz", "a%zz%41", "名前 と", "a,b"])
def test_each_name_reaches_its_cell_by_header_and_path(cells, name):
    header, path = {"X-Persona": quote(name, safe="")}, quote(name, safe="").replace(".", "%2E")
    with http_of(cells) as http:
        remember = {**TOOL, "params": {"name": "remember", "arguments": {"content": "睡蓮の踊り"}}}
        assert http.post("/mcp", json=remember, headers={**ACCEPT, **header}).json()["result"]["structuredContent"]["stored"]
        assert http.get("/api/recall", params={"query": "睡蓮"}, headers=header).json()["hits"]
        assert http.get(f"/p/{path}/api/recall", params={"query": "睡蓮"}).json()["hits"]
        assert http.get(f"/p/{path}/ui", follow_redirects=True).status_code == 200
    assert [made for made in cells.personas() if made[1] == name] == [(owner_of(name, OF), name, 1)]


@needs_haproxy
def test_a_raw_header_is_decoded_as_the_server_decodes_it(cells):
    names = ["さくら", "a?b+c", "%zz", "a%zz%41", "100%", "a+b"]
    with http_of(cells) as http:
        answers = [http.get("/api/stats", headers=[("X-Persona", name.encode())]) for name in names]
    assert [answer.status_code for answer in answers] == [200] * len(names)


@needs_haproxy
def test_another_spelling_is_refused_with_the_owner_and_makes_nothing(cells):
    composed = next(
        name for name in map("が{}".format, range(99)) if owner_of(name, OF) != owner_of(unicodedata.normalize("NFD", name), OF)
    )
    with http_of(cells) as http:
        answer = http.post("/api/import", content=b'{"content": "x"}', headers={"X-Persona": quote(unicodedata.normalize("NFD", composed))})
        owner = owner_of(composed, OF)
        assert (answer.status_code, answer.headers["x-persona-cell"]) == (421, str(owner))
        assert answer.headers["x-persona-url"] == f"{cells.url}/cell/{owner}"
        followed = httpx2.post(
            f"{answer.headers['x-persona-url']}/api/import",
            content=b'{"content": "x"}',
            headers={"X-Persona": quote(composed)},
            trust_env=False,
        )
        assert followed.json()["stored"] == 1
    assert [made for made in cells.personas() if made[1].startswith(composed[0])] == [(owner, composed, 1)]


@needs_haproxy
def test_a_cell_that_is_down_is_503_and_the_others_are_served(own_cells):
    names = [next(name for name in map("name{}".format, range(999)) if owner_of(name, OF) == cell) for cell in range(OF)]
    with http_of(own_cells) as http:
        for name in names:
            assert http.post("/api/import", content=b'{"content": "x"}', headers={"X-Persona": name}).json()["stored"] == 1
        own_cells.stops[2].close()
        answers = [http.get("/api/stats", headers={"X-Persona": name}) for name in names]
        writes = [http.post("/api/import", content=b'{"content": "y"}', headers={"X-Persona": name}) for name in names]
    assert [answer.status_code for answer in answers] == [200, 200, 503, 200]
    assert [answer.status_code for answer in writes] == [200, 200, 503, 200]
    assert "down" in answers[2].json()["error"]
    assert answers[2].headers["retry-after"] == "5"
    del own_cells.servers[2]
    assert sorted(name for _, name, _ in own_cells.personas()) == sorted(name for name in names if name != names[2])


def signed_in(http, secret, path):
    """The page at a path, after the form that asks for a token was sent if one came; and whether it did."""
    page = http.get(path)
    fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
    (form,) = re.findall(r'action="([^"]+/sign-[^"]+)"', page.text)
    if form.endswith("/sign-out"):
        return page, False
    return http.post(form, data={**fields, "token": secret}), True


@needs_haproxy
def test_a_browser_signs_in_once_at_each_cell(own_cells):
    names = [next(name for name in map("名前{}".format, range(999)) if owner_of(name, OF) == cell) for cell in range(OF)]
    paths = [f"/p/{quote(name)}/ui/today" for name in names]
    data = own_cells.servers[0].data
    secret = create_token(data, name="one", personas=None, scopes=["read", "write"], now=datetime.now(UTC))[1]
    for served in own_cells.servers[1:]:
        shutil.copy(data / "tokens.json", served.data)
    with http_of(own_cells) as http:
        http.follow_redirects = True
        for again in (False, True):
            pages = [signed_in(http, secret, path) for path in paths]
            assert [page.status_code for page, _ in pages] == [200] * OF
            assert [page.url.raw_path.decode() for page, _ in pages] == paths
            assert [asked for _, asked in pages] == [not again] * OF
        page = http.get(paths[2])
        http.post(f"/p/{quote(names[2])}/ui/sign-out", data=dict(re.findall(r'name="(form_key)" value="([^"]*)"', page.text)))
        assert [signed_in(http, secret, path)[1] for path in paths] == [False, False, True, False]


@needs_haproxy
def test_a_page_in_another_spelling_is_that_of_the_persona(cells):
    spelled = unicodedata.normalize("NFD", "が")
    assert owner_of("❤", OF) != owner_of("❤\ufe0f", OF)
    with http_of(cells) as http:
        for name, canonical in (("❤\ufe0f", "❤"), (spelled, "が")):
            page = http.get("/ui", params={"persona": name}, follow_redirects=True)
            assert (page.status_code, page.url.path.rpartition("/p/")[2]) == (200, f"{canonical}/ui/today")
        assert f"cell {owner_of('default', OF)} of {OF}" in http.get("/ui", headers={"Accept-Language": "en"}).text


def hostile_calls(count):
    """(method, path, headers, body, canonical name or None) of so many calls, all kinds of doors and spellings."""
    chance = random.Random(25)
    names = [name for name in changed_names() if len(name) <= 250 and not any("\ud800" <= letter <= "\udfff" for letter in name)]
    chosen = chance.sample(sorted(set(names)), 400)
    for _ in range(count):
        name = chance.choice(chosen)
        spelled = chance.choice([name, name, unicodedata.normalize("NFD", name), unicodedata.normalize("NFC", name)])
        by_path, sent = chance.random() < 0.5, quote(spelled, safe="").replace(".", "%2E")
        prefix = f"/p/{sent}" if by_path else ""
        header = [] if by_path else [("X-Persona", chance.choice([sent, sent.lower() if spelled.isascii() is False else sent]))]
        tool = {"name": "remember", "arguments": {"content": f"{len(spelled)} 睡蓮の踊り"}}
        ask = {"name": "recall", "arguments": {"query": "睡蓮"}}
        method, path, further, body = chance.choice(
            [
                ("GET", "/api/stats", [], None),
                ("GET", "/api/recall?query=x", [], None),
                ("POST", "/mcp", [*ACCEPT.items()], {**TOOL, "params": tool}),
                ("POST", "/mcp", [*ACCEPT.items()], {**TOOL, "params": ask}),
                ("POST", "/api/import", [], b'{"content": "imported"}\n'),
                ("GET", "/ui", [], None),
                ("POST", "/api/persona/copy", [], {"to": chance.choice(chosen)}),
            ]
        )
        named = canonical_or_none if path.startswith(MANAGEMENT) else addressed_or_none
        yield method, prefix + path, [*header, *further], body, named(spelled)


@needs_haproxy
@pytest.mark.timeout(3_600)
def test_no_hostile_name_makes_a_foreign_or_an_empty_persona(own_cells, thorough):
    calls = list(hostile_calls(100_000 if thorough else 600))
    seen, lock = Counter(), threading.Lock()

    def caller(part):
        with http_of(own_cells) as http:
            for method, path, headers, body, _name in part:
                sent = {"content": body} if isinstance(body, bytes) else {"json": body} if body else {}
                answer = http.request(method, path, headers=headers, **sent)
                with lock:
                    seen[answer.status_code] += 1

    with ThreadPoolExecutor(CALLERS) as threads:
        list(threads.map(caller, [calls[number::CALLERS] for number in range(CALLERS)]))
    assert sum(seen.values()) == len(calls)
    assert set(seen) <= {200, 302, 303, 400, 404, 421}, seen
    assert seen[200] > len(calls) / 3
    made = list(own_cells.personas())
    assert [(cell, name) for cell, name, _ in made if owner_of(name, OF) != cell] == []
    assert [(cell, name) for cell, name, count in made if not count] == []
    names = [name for _, name, _ in made]
    assert len(names) == len(set(names))
    print(f"{len(calls):,} calls, {len(made)} personas, {dict(seen)}", file=sys.stderr)


@pytest.mark.parametrize(
    ("server", "claim"),
    [("memory:8000", None), ("a b{cell}", None), ("m-${cell}:1", None), ("m{cell}:1\nbind x", None), ("m{cell}:1", "a')")],
)
def test_what_is_no_address_or_claim_is_refused(server, claim):
    with pytest.raises(InvalidInput):
        haproxy(OF, server, ":8000", claim)
