"""The dashboard as plain HTTP: who is let in, which forms are accepted, what a token sees, and what every page has."""

import json
import re
import ssl
from contextlib import ExitStack
from datetime import UTC, datetime
from html.parser import HTMLParser
from urllib.parse import quote, urlencode

import httpx2
import pytest

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.features.dashboard.frame import HEADERS
from memory_mcp.features.dashboard.routes import ROUTES
from memory_mcp.server.public_path import FROM_PROXY, public_path, with_public_path
from memory_mcp.server.sessions import COOKIE, IDLE_SECONDS, LIFE_SECONDS, SESSIONS_KEPT, Sessions
from memory_mcp.store.files.access_tokens import create_token, revoke_token

pytestmark = pytest.mark.slow  # a page for each of many tests

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
TLS = ssl.create_default_context()
BROWSER = {"Accept": "text/html"}
PAGES = sorted({route.path for route in ROUTES if "GET" in (getattr(route, "methods", None) or ())} - {"/"})
FORMS = sorted({route.path for route in ROUTES if "POST" in (getattr(route, "methods", None) or ())} - {"/ui/sign-in"})
EVERYTHING = "/api/export?include_deleted=true&include_versions=true"
SCRIPT = "<script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1))"


def stored(client, persona, *contents):
    """Stores memories and returns their keys."""
    lines = "".join(json.dumps({"key": f"memory_{number}", "content": content}) + "\n" for number, content in enumerate(contents))
    assert client.post("/api/import", content=lines.encode(), headers={"X-Persona": quote(persona)}).json()["stored"] == len(contents)
    return [f"memory_{number}" for number in range(len(contents))]


def form_key(page):
    return re.search(r'name="form_key" value="([0-9a-f]+)"', page.text)[1]


@pytest.fixture
def token(own_server):
    """token("nilou", scopes=…): the secret of a new token; no name means every persona."""

    def token(*personas, scopes=TOKEN_SCOPES, expires_at=None):
        return create_token(own_server.data, name="", personas=personas or None, scopes=scopes, now=NOON, expires_at=expires_at)[1]

    return token


@pytest.fixture
def client(own_server):
    """client(**headers): plain HTTP to the server of this test."""
    with ExitStack() as stack:
        yield lambda **headers: stack.enter_context(httpx2.Client(base_url=own_server.url, headers=headers, verify=TLS))


@pytest.fixture
def api(client):
    """api(secret, "nilou"): a program that sends this token."""
    return lambda secret, persona=None: client(Authorization=f"Bearer {secret}", **({"X-Persona": persona} if persona else {}))


@pytest.fixture
def signed_in(client):
    """signed_in(secret): a browser that has signed in."""

    def signed_in(secret):
        browser = client(**BROWSER)
        page = browser.get("/ui/sign-in")
        answer = browser.post("/ui/sign-in", data={"form_key": form_key(page), "token": secret})
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui")
        return browser

    return signed_in


ADDRESSES = re.compile(r'(?:href|src|action|formaction|data-root|hx-[a-z]+)="(/[^"]*)"')


@pytest.mark.parametrize("way", ["header", "setting"])
def test_under_the_path_of_a_proxy_every_address_of_every_page_begins_with_it(own_server, client, way):
    if way == "setting":
        own_server.configure(public_path="/home/memory/")
    browser = client(**BROWSER, **({"X-Forwarded-Prefix": "/home/memory"} if way == "header" else {}))
    stored(client(), "nilou", "健太は海老アレルギー。", "ニィロウは踊り手。")
    seen = set()
    for page in ("/", *(f"/p/nilou{path}" for path in PAGES), "/ui?choose=1", "/ui/nowhere", "/p/nilou/ui/memory?key=memory_0"):
        answer = browser.get(page)
        addresses = [*ADDRESSES.findall(answer.text), *filter(None, [answer.headers.get("location")])]
        assert [address for address in addresses if not f"{address}/".startswith("/home/memory/")] == [], page
        seen.update(addresses)
    assert len(seen) > 50
    for address in sorted(seen):  # as the proxy sends them on
        if "/static/" in address:
            assert browser.get(address.removeprefix("/home/memory")).status_code == 200
    chosen = browser.get("/p/nilou/ui/today?lang=ja")
    assert chosen.headers["location"] == "/home/memory/p/nilou/ui/today"
    assert "Path=/home/memory;" in chosen.headers["set-cookie"]


def test_signing_in_and_out_stays_under_the_path(own_server, token, client):
    browser = client(**BROWSER, **{"X-Forwarded-Prefix": "/memory"})
    secret = token("nilou")
    there = browser.get("/p/nilou/ui/today").headers["location"]
    assert there == "/memory/ui/sign-in?to=%2Fp%2Fnilou%2Fui%2Ftoday".replace("/memory/ui", "/memory/p/nilou/ui")
    page = browser.get(there.removeprefix("/memory"))
    to = re.search(r'name="to" value="([^"]*)"', page.text)[1]
    answer = browser.post("/ui/sign-in", data={"form_key": form_key(page), "token": secret, "to": to})
    assert (answer.status_code, answer.headers["location"]) == (303, "/memory/p/nilou/ui/today")
    assert "Path=/memory;" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "sent",
    [
        "memory",
        "//evil.example",
        "/a//b",
        "/../x",
        "/a/./b",
        '/a"b',
        "/a b",
        "https://evil.example",
        "/a, /b",
        "/<x>",
        "/%2e%2e",
        "/" + "x" * 300,
    ],
)
def test_a_path_that_is_none_is_ignored(http, sent):
    page = http.get("/ui?choose=1", headers={**BROWSER, "X-Forwarded-Prefix": sent})
    assert page.status_code == 200
    assert [address for address in ADDRESSES.findall(page.text) if not re.match(r"/(ui|p)\b", address)] == []


def test_the_path_counts_only_from_a_proxy_that_is_believed():
    headers = [(b"x-forwarded-prefix", b"/memory")]
    assert public_path(with_public_path({"type": "http", "headers": headers, "state": {FROM_PROXY: True}}, "")) == "/memory"
    for state in ({}, {FROM_PROXY: False}):
        assert public_path(with_public_path({"type": "http", "headers": headers, "state": state}, "/other")) == "/other"


def test_a_browser_is_sent_from_the_root_to_the_dashboard_and_other_clients_are_not(http):
    assert http.get("/", headers=BROWSER).headers["location"] == "/ui"
    assert http.get("/").status_code == 404


def test_the_only_persona_is_opened_at_once_and_several_are_listed(own_http):
    stored(own_http, "さくら", "a")
    assert own_http.get("/ui").headers["location"] == f"/p/{quote('さくら')}/ui/today"
    stored(own_http, "a/b", "a")
    page = own_http.get("/ui")
    assert f'href="/p/{quote("さくら")}/ui/today"' in page.text
    assert 'href="/p/a%2Fb/ui/today"' in page.text
    assert own_http.get("/p/a%2Fb/ui/memories").status_code == 200


def test_without_tokens_the_page_says_who_can_read_everything(http):
    assert "everybody on this machine can read and change everything" in http.get("/p/nilou/ui/memories").text


def test_without_tokens_a_browser_on_another_machine_is_refused(tmp_path, serving):
    with serving(tmp_path, allowed_hosts=["memory.test"]) as server, httpx2.Client(base_url=server.url, verify=TLS) as client:
        page = client.get("/p/nilou/ui/memories", headers={"Host": "memory.test"})
        assert page.status_code == 403
        assert "without tokens the dashboard is for this machine alone" in page.text
        secret = create_token(server.data, name="", personas=None, scopes=TOKEN_SCOPES, now=NOON)[1]
        assert client.get("/p/nilou/ui/memories", headers={"Authorization": f"Bearer {secret}", "Host": "memory.test"}).status_code == 200


def test_with_tokens_every_page_asks_strangers_to_sign_in(own_http, token):
    stored(own_http, "nilou", "秘密")
    token("nilou")
    assert own_http.get("/ui/sign-in").status_code == 200
    for path in set(PAGES) - {"/ui/sign-in"}:
        for prefix, address in (("", path), ("/p/nilou", f"/p/nilou{path}"), ("/p/nilou", f"/p/nilou{path}?key=memory_0")):
            answer = own_http.get(address, headers=BROWSER)
            assert (answer.status_code, answer.text) == (303, "")
            assert answer.headers["location"] == f"{prefix}/ui/sign-in?{urlencode({'to': address})}"


def test_signing_in_gives_a_cookie_that_no_script_and_no_other_site_sees(own_http, token, signed_in):
    client = signed_in(token("nilou"))
    answer = own_http.post("/ui/sign-in", data={"form_key": form_key(own_http.get("/ui/sign-in")), "token": token("nilou")})
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert "max-age" not in said
    assert client.get("/p/nilou/ui/memories").status_code == 200


@pytest.mark.parametrize(
    ("headers", "is_secure"), [({}, False), ({"X-Forwarded-Proto": "https"}, True), ({"Host": "memory.example.org"}, True)]
)
def test_a_cookie_given_behind_tls_is_for_tls_alone(tmp_path, serving, headers, is_secure):
    oauth = {"authorization_server": "built_in", "public_url": "https://memory.example.org"}
    with serving(tmp_path, oauth=oauth) as server, httpx2.Client(base_url=server.url, verify=TLS, headers=headers) as client:
        secret = create_token(server.data, name="", personas=None, scopes=TOKEN_SCOPES, now=NOON)[1]
        answer = client.post("/ui/sign-in", data={"form_key": form_key(client.get("/ui/sign-in")), "token": secret})
        assert ("; secure" in answer.headers["set-cookie"].lower()) is is_secure


def test_a_wrong_token_signs_nobody_in_and_is_noted(own_server, own_http, token):
    token("nilou")
    answer = own_http.post("/ui/sign-in", data={"form_key": form_key(own_http.get("/ui/sign-in")), "token": "mmcp_x"})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert '"asked": "POST /ui/sign-in"' in (own_server.data / "memory_operations.log").read_text(encoding="utf-8")


def test_signing_in_leads_to_pages_of_the_dashboard_alone(own_http, token):
    secret, own = token("nilou"), "/p/nilou/ui/memory?key=a"
    for to in (own, "//evil.test/ui", "https://evil.test/ui", "/\\evil.test/ui", "/p/\\evil.test/ui", "/uix", "/api/export"):
        key = form_key(own_http.get("/ui/sign-in"))
        answer = own_http.post("/ui/sign-in", data={"form_key": key, "token": secret, "to": to})
        assert answer.headers["location"] == (own if to == own else "/ui"), to
        own_http.cookies.clear()


def test_a_session_ends_with_its_token_and_when_it_signs_out(own_server, token, signed_in):
    secret, other = token("nilou"), token("nilou")
    first, second = signed_in(secret), signed_in(other)
    page = first.get("/p/nilou/ui/memories")
    revoke_token(own_server.data, secret.split("_")[1], NOON)
    assert first.get("/p/nilou/ui/memories").status_code == 303
    assert first.post("/p/nilou/ui/memories/new", data={"form_key": form_key(page), "content": "x"}).status_code == 303
    kept = second.cookies[COOKIE]
    second.post("/ui/sign-out", data={"form_key": form_key(second.get("/p/nilou/ui/memories"))})
    assert second.get("/p/nilou/ui/memories", headers={"Cookie": f"{COOKIE}={kept}"}).status_code == 303


def test_a_session_ends_without_use_and_after_its_life():
    clock = [0.0]
    sessions = Sessions(lambda: clock[0])
    cookie = sessions.begin("a")
    clock[0] += IDLE_SECONDS
    assert sessions.token_of(cookie) == "a"
    clock[0] += IDLE_SECONDS + 1
    assert sessions.token_of(cookie) is None
    cookie = sessions.begin("a")
    for _ in range(LIFE_SECONDS // IDLE_SECONDS):
        clock[0] += IDLE_SECONDS
        assert sessions.token_of(cookie) == "a"
    clock[0] += 1
    assert sessions.token_of(cookie) is None


def test_the_number_of_sessions_is_bounded_and_an_unknown_cookie_is_none():
    sessions = Sessions()
    cookies = [sessions.begin(str(number)) for number in range(SESSIONS_KEPT + 1)]
    assert sessions.token_of(cookies[0]) is None
    assert sessions.token_of(cookies[-1]) == str(SESSIONS_KEPT)
    assert sessions.token_of("x") is None


def test_the_cookie_opens_pages_alone_and_no_route_or_tool(token, signed_in):
    client = signed_in(token("nilou"))
    assert client.get("/ui").status_code == 200
    assert client.get("/api/personas").status_code == 401
    assert client.post("/mcp", json={}).status_code == 401
    assert client.get("/p/nilou/api/memories").status_code == 401


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        ("own", {"Origin": "http://localhost:5000"}),
        ("own", {"Origin": "null"}),
        ("own", {"Sec-Fetch-Site": "same-site"}),
        ("own", {"Sec-Fetch-Site": "cross-site"}),
        ("none", {}),
        ("wrong", {}),
        ("another session's", {}),
    ],
)
def test_a_form_that_no_page_of_this_session_has_sent_changes_nothing(api, token, signed_in, key, headers):
    secret = token()
    other, client = signed_in(secret), signed_in(secret)
    program = api(secret, "nilou")
    stored(program, "nilou", "a")
    page = client.get("/p/nilou/ui/memories")
    keys = {"own": form_key(page), "wrong": "0" * 64, "another session's": form_key(other.get("/p/nilou/ui/memories"))}
    before = program.get(EVERYTHING).content
    fields = {"key": "memory_0", "content": "b", "revision": "1", **({"form_key": keys[key]} if key in keys else {})}
    for path in FORMS:
        assert client.post(f"/p/nilou{path}", data=fields, headers=headers).status_code == 403, path
    assert program.get(EVERYTHING).content == before
    assert client.get("/p/nilou/ui/memories").status_code == 200


def test_forms_of_other_pages_of_this_machine_change_nothing_without_tokens_either(own_http):
    stored(own_http, "nilou", "a")
    own = {"form_key": form_key(own_http.get("/p/nilou/ui/memories")), "key": "memory_0"}
    for fields, headers in (({"key": "memory_0"}, {}), (own, {"Origin": "http://127.0.0.1:5000"}), (own, {"Sec-Fetch-Site": "same-site"})):
        assert own_http.post("/p/nilou/ui/memories/forget", data=fields, headers=headers).status_code == 403
    assert own_http.get("/api/stats", headers={"X-Persona": "nilou"}).json()["memories"] == 1
    assert own_http.post("/p/nilou/ui/memories/forget", data=own, headers={"Origin": str(own_http.base_url)}).status_code == 303
    assert own_http.get("/api/stats", headers={"X-Persona": "nilou"}).json()["memories"] == 0


@pytest.mark.slow
def test_a_persona_that_is_not_the_tokens_looks_as_one_that_does_not_exist(api, token, signed_in):
    client = signed_in(token("nilou"))
    addresses = [f"/p/alice{path}?{query}" for path in PAGES for query in ("key=memory_0", "q=睡蓮", "shelf=all")]
    before = [client.get(address) for address in addresses]
    stored(api(token()), "alice", "睡蓮")
    after = [client.get(address) for address in addresses]
    assert [(page.status_code, page.content) for page in after] == [(page.status_code, page.content) for page in before]
    assert "alice" not in client.get("/ui").text


def test_a_persona_that_is_not_the_tokens_is_not_changed(api, token, signed_in):
    owner = api(token(), "alice")
    stored(owner, "alice", "睡蓮")
    client = signed_in(token("nilou"))
    before = owner.get(EVERYTHING).content
    fields = {"key": "memory_0", "content": "b", "revision": "1", "form_key": form_key(client.get("/p/nilou/ui/memories"))}
    for path in FORMS:
        if path != "/ui/sign-out":
            assert "睡蓮" not in client.post(f"/p/alice{path}", data=fields).text
    assert owner.get(EVERYTHING).content == before


def test_a_token_without_a_scope_is_shown_no_way_to_use_it_and_is_refused(own_http, api, token, signed_in):
    stored(own_http, "nilou", "a")
    client = signed_in(token("nilou", scopes=["read"]))
    pages = [client.get("/p/nilou/ui/memories"), client.get("/p/nilou/ui/memory?key=memory_0")]
    for page in pages:
        assert set(re.findall(r'<form[^>]*method="post" action="([^"]+)"', page.text)) == {"/p/nilou/ui/sign-out"}
        assert not re.search("/memories/new|/memory/edit", page.text)
    before = api(token(), "nilou").get(EVERYTHING).content
    sent = {"form_key": form_key(pages[0]), "key": "memory_0", "content": "b", "revision": "1"}
    for path in FORMS:
        if path not in {"/ui/sign-out", "/ui/authorize"}:
            assert "needs a token with the scope" in client.post(f"/p/nilou{path}", data=sent).text, path
    assert api(token(), "nilou").get(EVERYTHING).content == before
    assert "needs a token with the scope write" in client.post("/p/nilou/ui/memories/new", data=sent).text


def test_a_token_that_may_not_read_sees_no_memory(own_http, token, signed_in):
    stored(own_http, "nilou", "秘密の話")
    client = signed_in(token("nilou", scopes=["write", "delete", "export", "admin"]))
    for address in (
        "/p/nilou/ui/memories",
        "/p/nilou/ui/memories?q=秘密",
        "/p/nilou/ui/memory?key=memory_0",
        "/p/nilou/ui/memory/edit?key=memory_0",
    ):
        page = client.get(address)
        assert page.status_code == 403
        assert "秘密の話" not in page.text


class Inline(HTMLParser):
    """Collects what a page has inline: scripts, styles, handlers, addresses that are scripts."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        strange = tag in ("style", "img", "iframe", "object", "embed", "base") or (tag == "script" and "src" not in named)
        handlers = [
            name for name, value in attrs if name.startswith("on") or name == "style" or (value or "").strip().startswith("javascript:")
        ]
        self.found += [tag] if strange or handlers else []


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_the_headers_and_nothing_inline(http, name, path):
    stored(http, name, SCRIPT)
    strange = urlencode(dict.fromkeys(("q", "key", "tags", "to", "persona", "after", "shelf", "content"), SCRIPT))
    for address in (f"/p/{name}{path}?key=memory_0", f"/p/{name}{path}?q=alert", f"/p/{name}{path}?{strange}"):
        page = http.get(address, headers=BROWSER)
        if page.status_code != 303:
            assert {header: page.headers.get(header) for header in HEADERS} == HEADERS
            assert "attachment" in page.headers.get("content-disposition", "") or not Inline(page.text).found


def test_headers_forbid_everything_but_our_own_files():
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }


def test_stored_markup_is_text(http, name):
    (key,) = stored(http, name, SCRIPT)
    for path in ("/ui/memories", f"/ui/memory?key={key}", f"/ui/memory/edit?key={key}"):
        page = http.get(f"/p/{name}{path}").text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>alert" not in page


def test_static_files_are_kept_by_browsers_and_nothing_beside_them_is_served(http):
    address = re.search(r'href="(/ui/static/dashboard\.css\?v=\w+)"', http.get("/ui").text)[1]
    answer = http.get(address)
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    for path in ("/ui/static/../frame.py", "/ui/static/%2e%2e/frame.py", "/ui/static/..%2fframe.py", "/ui/static/vendor"):
        assert http.get(path).status_code == 404, path


def test_the_language_is_the_browsers_until_one_is_chosen(http, name):
    path = f"/p/{name}/ui/memories"
    assert '<html lang="ja"' in http.get(path, headers={"Accept-Language": "ja-JP,en;q=0.5"}).text
    assert '<html lang="en"' in http.get(path, headers={"Accept-Language": "fr"}).text
    chosen = http.get(f"{path}?q=a&lang=ja")
    assert chosen.headers["location"] == f"{path}?q=a"
    assert '<html lang="ja"' in http.get(path, headers={"Accept-Language": "en"}).text
    http.cookies.clear()
    assert http.get(f"{path}?lang=fr").status_code == 200


def test_a_theme_that_was_chosen_stays(http, name):
    assert 'data-theme="auto"' in http.get(f"/p/{name}/ui/memories").text
    assert 'data-theme="dark"' in http.get(f"/p/{name}/ui/memories?theme=dark", follow_redirects=True).text


def test_a_server_that_cannot_read_its_tokens_shows_nothing(own_server, own_http, token):
    stored(own_http, "nilou", "秘密")
    token("nilou")
    (own_server.data / "tokens.json").write_text("{", encoding="utf-8")
    page = own_http.get("/p/nilou/ui/memories", headers=BROWSER)
    assert page.status_code == 500
    assert "no call is accepted at the moment" in page.text
    assert "秘密" not in page.text


def test_a_form_with_thousands_of_fields_or_megabytes_is_refused(http, name):
    stored(http, name, "a")
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for path in (f"/p/{name}/ui/memories/forget", "/ui/sign-in"):
        answer = http.post(path, content="content=" + "x" * 5_000_000, headers=kind)
        assert answer.status_code == 413
        assert "4 MiB are the limit" in answer.text
    assert http.post(f"/p/{name}/ui/memories/forget", content="&".join(f"key={n}" for n in range(2_000)), headers=kind).status_code == 403


WRITES = {
    "/ui/memories/new": {"content": SCRIPT, "source": SCRIPT, "supersedes": "memory_0"},
    "/ui/memory/edit": {"key": "memory_0", "revision": "1", "content": SCRIPT, "source": SCRIPT, "occurred_at": "2025-10-01"},
    "/ui/memory/replace": {"key": "memory_0", "earlier": SCRIPT},
    "/ui/people/add": {"name": SCRIPT, "type": "Person"},
    "/ui/people/change": {"entity": "健太", "name": SCRIPT, "type": "Person", "description": SCRIPT},
    "/ui/people/relate": {"entity": "健太", "relation": SCRIPT, "target": SCRIPT},
    "/ui/sample": {},
    "/ui/sample/discard": {},
}


@pytest.mark.parametrize("path", WRITES)
def test_a_write_takes_no_form_of_another_page_shows_markup_as_text_and_reaches_no_other_persona(api, token, signed_in, path):
    program, guest = api(token(), "nilou"), signed_in(token("nilou"))
    stored(program, "nilou", "[[健太|Person]]は苺が好き。")
    stored(program, "alice", "[[健太|Person]]は桃が好き。")
    fields = WRITES[path]
    own = {"form_key": form_key(guest.get("/p/nilou/ui/memories"))}
    other = program.get(EVERYTHING, headers={"X-Persona": "alice"}).content
    for form, headers in (({}, {}), ({"form_key": "0" * 64}, {}), (own, {"Origin": "http://evil.test"})):
        assert guest.post(f"/p/nilou{path}", data={**fields, **form}, headers=headers).status_code == 403
    assert "SCRIPT" not in program.get(EVERYTHING).text
    assert guest.post(f"/p/alice{path}", data={**fields, **own}).status_code in (303, 400, 403, 404)
    assert program.get(EVERYTHING, headers={"X-Persona": "alice"}).content == other
    answer = guest.post(f"/p/nilou{path}", data={**fields, **own}, follow_redirects=True)
    for page in (
        answer,
        *(guest.get(f"/p/nilou{shown}") for shown in ("/ui/memories?shelf=all", "/ui/memory?key=memory_0", "/ui/people", "/ui/today")),
    ):
        assert not Inline(page.text).found
    assert "sample" not in {persona["name"] for persona in program.get("/api/personas").json()["personas"]}


def test_the_sample_is_thrown_away_only_while_nobody_has_added_anything(own_http):
    key = form_key(own_http.get("/p/nilou/ui/today"))
    assert own_http.post("/p/nilou/ui/sample", data={"form_key": key}).headers["location"] == "/p/sample/ui/today"
    stored(own_http, "sample", "私の記憶")
    assert own_http.post("/p/sample/ui/sample/discard", data={"form_key": key}).status_code == 400
    assert own_http.get("/api/memory?key=memory_0", headers={"X-Persona": "sample"}).status_code == 200
