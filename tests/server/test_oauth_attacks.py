"""The built-in authorization server against those who want more than they were granted."""

import json
import re
import threading
from contextlib import ExitStack, closing
from datetime import timedelta

import httpx2
import pytest
from oauth_person import CHALLENGE, RETURN_TO, TLS, VERIFIER, Person, PlainClient, form_of, query_of

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.store.files.access_tokens import create_token, revoke_token
from memory_mcp.store.files.oauth_grants import CLIENTS_KEPT, register_client

pytestmark = pytest.mark.slow

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "x"}}}
MCP = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture
def server(own_server):
    own_server.configure(oauth={"authorization_server": "built_in", "public_url": own_server.url})
    return own_server


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def token(server):
    """token("nilou", scopes=…): the secret of a new token."""
    return lambda *personas, scopes=TOKEN_SCOPES: create_token(
        server.data, name="", personas=personas or None, scopes=scopes, now=server.clock()
    )[1]


@pytest.fixture
def person(token, stack):
    return stack.enter_context(closing(Person(token())))


@pytest.fixture
def client(server, stack):
    return stack.enter_context(closing(PlainClient(server.url)))


@pytest.fixture
def tokens(client, person):
    """The tokens of a client that was granted nilou."""
    return client.exchanged(person.granted(client.address(), "nilou")["code"]).json()


def called(server, access, persona="nilou", path="/mcp", call=ASKED):
    headers = {**MCP, "Authorization": f"Bearer {access}", **({"X-Persona": persona} if persona else {})}
    return httpx2.post(server.url + path, json=call, headers=headers, verify=TLS)


def refused(answer, code):
    assert (answer.status_code, answer.json()["error"]) == (400, code), answer.text
    return True


def test_a_code_is_good_once_and_shown_again_ends_what_it_gave(server, client, person):
    code = person.granted(client.address(), "nilou")["code"]
    given = client.exchanged(code).json()
    assert called(server, given["access_token"]).status_code == 200
    assert refused(client.exchanged(code), "invalid_grant")
    assert called(server, given["access_token"]).status_code == 401
    assert refused(client.refreshed(given["refresh_token"]), "invalid_grant")


def test_of_many_who_show_the_same_code_at_once_at_most_one_is_given_tokens(client, person):
    code, answers = person.granted(client.address(), "nilou")["code"], []
    threads = [threading.Thread(target=lambda: answers.append(client.exchanged(code).status_code)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 400, 400, 400, 400, 400]


def test_a_code_expires(server, client, person):
    code = person.granted(client.address(), "nilou")["code"]
    server.clock.now += timedelta(minutes=3)
    assert refused(client.exchanged(code), "invalid_grant")


@pytest.mark.parametrize(
    "changed",
    [{"code_verifier": "w" * 64}, {"code_verifier": CHALLENGE}, {"client_id": "another"}, {"redirect_uri": "http://127.0.0.1:1/callback"}],
)
def test_a_stolen_code_is_worth_nothing_and_ends_with_the_attempt(client, person, changed):
    code = person.granted(client.address(), "nilou")["code"]
    assert refused(client.exchanged(code, **changed), "invalid_grant")
    assert refused(client.exchanged(code), "invalid_grant")


@pytest.mark.parametrize(
    "changed",
    [
        {"code_challenge": None},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain", "code_challenge": VERIFIER},
        {"code_challenge_method": "plain"},
        {"code_challenge": "short"},
        {"code_challenge": None, "code_challenge_method": None},
    ],
)
def test_a_client_can_not_do_without_pkce_or_with_less(client, person, changed):
    person.opened(client.url + "/ui")
    answer = person.browser.get(client.address(**changed))
    assert answer.status_code == 303
    told = query_of(answer.headers["location"])
    assert (told["error"], told["iss"], told["state"]) == ("invalid_request", client.url, "xyz")
    assert "code" not in told


def test_a_used_refresh_token_ends_its_grant_for_the_thief_and_for_the_client(server, client, tokens):
    renewed = client.refreshed(tokens["refresh_token"]).json()
    assert called(server, renewed["access_token"]).status_code == 200
    assert refused(client.refreshed(tokens["refresh_token"]), "invalid_grant")
    assert called(server, renewed["access_token"]).status_code == 401
    assert refused(client.refreshed(renewed["refresh_token"]), "invalid_grant")


def test_who_only_knows_the_id_of_a_grant_can_not_end_it(server, client, tokens):
    identity = tokens["refresh_token"].split("_")[1]
    assert refused(client.refreshed(f"mmcr_{identity}_{'0' * 96}"), "invalid_grant")
    assert refused(client.exchanged(f"mmcc_{identity}_{'0' * 96}"), "invalid_grant")
    assert client.revoked(f"mmcr_{identity}_{'0' * 96}").status_code == 200
    assert called(server, tokens["access_token"]).status_code == 200


def test_a_refresh_token_in_another_clients_hands_ends(client, tokens):
    assert refused(client.refreshed(tokens["refresh_token"], client_id="another"), "invalid_grant")
    assert refused(client.refreshed(tokens["refresh_token"]), "invalid_grant")


def test_tokens_expire_and_a_grant_that_nobody_uses_does(server, client, tokens):
    server.clock.now += timedelta(hours=1)
    assert called(server, tokens["access_token"]).status_code == 401
    renewed = client.refreshed(tokens["refresh_token"]).json()
    assert called(server, renewed["access_token"]).status_code == 200
    server.clock.now += timedelta(days=30)
    assert refused(client.refreshed(renewed["refresh_token"]), "invalid_grant")


def test_only_an_access_token_opens_the_door(server, client, person, tokens):
    code = person.granted(client.address(), "nilou")["code"]
    for secret in (tokens["refresh_token"], code, tokens["access_token"].replace("mmca", "mmcr")):
        assert called(server, secret).status_code == 401


def test_a_token_for_another_server_is_not_asked_for_here_nor_good_here(server, client, person, tokens):
    person.opened(client.url + "/ui")
    for resource in ("https://other.example/mcp", f"{client.url}.other.example/mcp", f"{client.url}/mcp/other", f"{client.url}/p/x/other"):
        told = query_of(person.browser.get(client.address(resource=resource)).headers["location"])
        assert (told["error"], told["iss"]) == ("invalid_target", client.url)
    code = person.granted(client.address(), "nilou")["code"]
    assert refused(client.exchanged(code, resource="https://other.example/mcp"), "invalid_target")
    assert refused(client.refreshed(tokens["refresh_token"], resource=f"{client.url}/p/nilou/mcp"), "invalid_target")
    assert called(server, tokens["access_token"]).status_code == 200
    # The same file under another name of the server, as after a restore elsewhere.
    server.configure(oauth={"authorization_server": "built_in", "public_url": "https://memory.example.org"})
    assert called(server, tokens["access_token"]).status_code == 401


@pytest.mark.parametrize(
    "address",
    [
        "https://attacker.example/callback",
        "http://127.0.0.1:53682/callback/../other",
        "http://127.0.0.1:53682/other",
        "http://127.0.0.1@attacker.example/callback",
        "http://127.0.0.1:53682@attacker.example/callback",
        "http://127.0.0.1.attacker.example/callback",
        "https://127.0.0.1:53682/callback",
        "http://localhost:53682/callback",
        "http://127.0.0.1:53682/callback?x=1",
        "http://127.0.0.1:53682/callback#x",
        "//attacker.example",
        "javascript:alert(1)",
        "",
    ],
)
def test_nobody_is_sent_to_an_address_that_the_client_has_not_named(client, person, address):
    answer = person.opened(client.address(redirect_uri=address))
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert "may not be answered there" in answer.text


def test_a_client_on_the_users_machine_chooses_its_port(client, person):
    address = "http://127.0.0.1:9/callback"
    code = person.granted(client.address(redirect_uri=address), "nilou")["code"]
    assert client.exchanged(code, redirect_uri=address).status_code == 200


@pytest.mark.parametrize(
    "to", ["https://attacker.example/", "//attacker.example", "/ui/../../x", "/\\attacker.example", "https:attacker.example"]
)
def test_signing_in_leads_to_no_other_site(server, person, to):
    page = person.browser.get(f"{server.url}/ui/sign-in", params={"to": to})
    answer = person.browser.post(f"{server.url}/ui/sign-in", data={**dict(form_of(page)), "token": person.secret, "to": to})
    assert answer.headers["location"] in ("/ui", "/ui/../../x")


@pytest.mark.parametrize(
    "addresses",
    [
        ["javascript:alert(1)"], ["data:text/html,x"], ["http://attacker.example/callback"], ["https://user@attacker.example/"], [],
        ["https://a.example/#x"], ["https://a.example;script-src/"], ["https://a.example/ x"], ["https://a.example/x", "file:///etc/passwd"],
        ["https:///x"], ["x" * 3000], ["https://a.example/x"] * 11,
    ],
)  # fmt: skip
def test_a_client_registers_no_address_that_could_not_be_its_own(client, addresses):
    answer = client.http.post("/oauth/register", json={"redirect_uris": addresses})
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


def test_the_consent_page_says_who_asks_for_what_and_where_it_leads_in_both_languages(client, person):
    page = person.opened(client.address(scope="read delete admin"))
    for said in ("Test client", "It registered itself", "http://127.0.0.1:53682", "read: ", "delete: "):
        assert said in page.text
    assert "admin: " not in page.text
    assert "form-action 'self' http://127.0.0.1:53682;" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    page = person.browser.get(client.address() + "&lang=ja", follow_redirects=True)
    assert "クライアントに記憶の利用を許可する" in page.text
    assert person.answered(page, "nilou").status_code == 303


def test_refusals_of_the_page_are_in_japanese_on_japanese_pages(client, person):
    person.opened(f"{client.url}/ui?lang=ja")
    for changed in ({"redirect_uri": "https://attacker.example/"}, {"client_id": "nobody"}, {"client_id": "https://127.0.0.1/x"}):
        said = person.opened(client.address(**changed)).text.partition("<main")[2].partition("</main>")[0]
        assert re.search("[ぁ-ん]", said)
        assert not re.search(r"[A-Za-z]+ [a-z]+ [a-z]+", re.sub("<[^>]*>", "", said)), said


def test_a_name_of_a_client_is_never_markup(server, person, stack):
    client = stack.enter_context(closing(PlainClient(server.url, client_name="<script>alert(1)</script>")))
    page = person.opened(client.address(state='"><script>alert(2)</script>'))
    assert "<script>alert" not in page.text


def test_a_person_grants_no_more_than_their_own_token(server, client, token, stack):
    person = stack.enter_context(closing(Person(token("nilou", scopes=["read"]))))
    page = person.opened(client.address(scope="read write export"))
    assert "write: " not in page.text
    assert person.answered(page, "dehya").status_code == 403
    assert person.answered(page, "nilou", further="dehya").status_code == 403
    answer = person.answered(page, "nilou", scopes=["read", "write", "export", "admin"])
    given = client.exchanged(query_of(answer.headers["location"])["code"]).json()
    assert given["scope"] == "read"
    listed = httpx2.get(f"{server.url}/api/personas", headers={"Authorization": f"Bearer {given['access_token']}"}, verify=TLS)
    assert listed.status_code == 200
    assert called(server, given["access_token"], "dehya").json()["result"]["structuredContent"]["hits"] == []


def test_a_token_without_the_scopes_that_are_asked_for_grants_nothing(client, token, stack):
    person = stack.enter_context(closing(Person(token("nilou", scopes=["export"]))))
    answer = person.opened(client.address(scope="read"))
    assert answer.status_code == 403


def test_refusing_and_choosing_nothing_grant_nothing(server, client, person):
    page = person.opened(client.address())
    assert person.answered(page).status_code == 400
    assert person.answered(page, "nilou", scopes=[]).status_code == 400
    told = query_of(person.answered(page, "nilou", decision="deny").headers["location"])
    assert told == {"error": "access_denied", "state": "xyz", "iss": server.url}
    assert json.loads((server.data / "oauth.json").read_text())["grants"] == []


def test_no_other_page_can_grant_for_the_person(server, client, person):
    page = person.opened(client.address())
    fields = {**dict(form_of(page)), "personas": "nilou", "decision": "grant"}
    for headers, changed in (
        ({"Origin": "https://attacker.example"}, {}),
        ({}, {"form_key": "0" * 64}),
        ({"Sec-Fetch-Site": "same-site"}, {}),
    ):
        answer = person.browser.post(f"{server.url}/ui/authorize", data={**fields, **changed}, headers=headers)
        assert answer.status_code == 403
    stranger = httpx2.post(f"{server.url}/ui/authorize", data=fields, verify=TLS)
    assert stranger.headers["location"].startswith("/ui/sign-in")


def test_the_form_can_not_be_changed_into_another_request_than_was_checked(client, person):
    page = person.opened(client.address())
    assert person.answered(page, "nilou", redirect_uri="https://attacker.example/").status_code == 400
    told = query_of(person.answered(page, "nilou", code_challenge_method="plain").headers["location"])
    assert told["error"] == "invalid_request"
    assert person.answered(page, "nilou", client_id=["a", "b"]).status_code == 400


def test_a_client_can_not_grant_itself_anything(server, client, tokens):
    with_token = {"Authorization": f"Bearer {tokens['access_token']}"}
    for method, path in (("GET", client.address()), ("POST", f"{server.url}/ui/authorize"), ("GET", f"{server.url}/ui")):
        answer = httpx2.request(method, path, headers=with_token, verify=TLS)
        assert answer.status_code == 401
    assert httpx2.get(f"{server.url}/api/tokens", headers=with_token, verify=TLS).status_code == 403


def test_an_old_session_needs_the_token_again(server, client, person, monkeypatch):
    page = person.opened(client.address())
    monkeypatch.setattr("memory_mcp.server.sessions.FRESH_SECONDS", -1)
    assert person.answered(page, "nilou").status_code == 403
    assert person.answered(page, "nilou", own_token="wrong").status_code == 403
    assert person.answered(page, "nilou", own_token=person.secret).status_code == 303


def test_a_grant_ends_with_the_token_of_its_owner(server, client, person, tokens):
    assert called(server, tokens["access_token"]).status_code == 200
    revoke_token(server.data, person.secret.split("_")[1], server.clock())
    assert called(server, tokens["access_token"]).status_code == 401


def test_a_grant_is_never_more_than_its_owners_token_is_now(server, tokens):
    path = server.data / "tokens.json"
    tree = json.loads(path.read_text())
    tree["tokens"][0]["scopes"] = ["read"]
    path.write_text(json.dumps(tree))
    assert called(server, tokens["access_token"]).status_code == 200
    remember = {**ASKED, "params": {"name": "remember", "arguments": {"content": "x"}}}
    assert called(server, tokens["access_token"], call=remember).status_code == 403
    tree["tokens"][0]["personas"] = ["dehya"]
    path.write_text(json.dumps(tree))
    assert called(server, tokens["access_token"]).status_code == 403


def test_a_client_can_revoke_its_tokens_and_no_others(server, client, tokens):
    assert client.revoked(tokens["refresh_token"], client_id="another").status_code == 200
    assert called(server, tokens["access_token"]).status_code == 200
    assert client.revoked("nonsense").status_code == 200
    assert client.revoked(tokens["access_token"]).status_code == 200
    assert called(server, tokens["access_token"]).status_code == 401
    assert refused(client.refreshed(tokens["refresh_token"]), "invalid_grant")


def test_no_secret_is_stored_and_none_is_in_the_log(server, client, person, tokens):
    code = person.granted(client.address(), "nilou")["code"]
    client.refreshed(tokens["refresh_token"])
    client.refreshed(tokens["refresh_token"])
    written = (server.data / "oauth.json").read_text() + (server.data / "memory_operations.log").read_text()
    for secret in (code, tokens["access_token"], tokens["refresh_token"]):
        assert secret.rpartition("_")[2][32:] not in written
    assert (server.data / "oauth.json").stat().st_mode & 0o777 == 0o600
    log = [json.loads(line) for line in (server.data / "memory_operations.log").read_text().splitlines()]
    assert [line["reason"] for line in log if line["operation"] == "refused"][-1] == "grant"


def test_wrong_sign_ins_of_an_address_come_to_an_end_and_others_may_go_on(server, client, token, stack):
    guesser = stack.enter_context(closing(Person("mmcp_0123456789_" + "0" * 64, address="192.0.2.1")))
    answers = [guesser.opened(client.address()).status_code for _ in range(11)]
    assert answers == [401] * 10 + [429]
    guesser.secret = token()
    assert guesser.opened(client.address()).status_code == 429
    assert stack.enter_context(closing(Person(token(), address="192.0.2.2"))).opened(client.address()).status_code == 200


def test_strangers_can_not_fill_the_disk_with_clients(server, client):
    answers = [client.http.post("/oauth/register", json={"redirect_uris": [RETURN_TO]}).status_code for _ in range(11)]
    assert answers[-1] == 429
    for number in range(CLIENTS_KEPT + 5):
        register_client(server.data, name=str(number), redirect_uris=[RETURN_TO], now=server.clock())
    assert len(json.loads((server.data / "oauth.json").read_text())["clients"]) == CLIENTS_KEPT


def test_a_client_that_was_granted_something_is_never_dropped(server, client, tokens):
    for number in range(CLIENTS_KEPT + 5):
        register_client(server.data, name=str(number), redirect_uris=[RETURN_TO], now=server.clock())
    assert client.refreshed(tokens["refresh_token"]).status_code == 200
    assert client.id in (server.data / "oauth.json").read_text()


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/register"])
def test_nonsense_at_the_endpoints_is_refused_in_their_form(client, path):
    for body in (b"", b"\xff\xfe", b"a=1&a=2", b"[" * 9000, b"x" * 40_000):
        answer = client.http.post(path, content=body)
        assert answer.status_code == 400
        assert set(answer.json()) == {"error", "error_description"}
    assert refused(client.http.post("/oauth/token", data={"grant_type": "password", "client_id": "x"}), "unsupported_grant_type")


def test_grants_and_clients_survive_a_restart(serving, tmp_path, stack):
    with serving(tmp_path) as server:
        settings = {"oauth": {"authorization_server": "built_in", "public_url": server.url}}
        server.configure(**settings)
        secret = create_token(server.data, name="", personas=None, scopes=TOKEN_SCOPES, now=server.clock())[1]
        client = stack.enter_context(closing(PlainClient(server.url)))
        person = stack.enter_context(closing(Person(secret)))
        given = client.exchanged(person.granted(client.address(), "nilou")["code"]).json()
        code = person.granted(client.address(), "nilou")["code"]
    with serving(tmp_path, **settings) as again, httpx2.Client(base_url=again.url, verify=TLS) as http:
        client.close()
        client.http = http
        assert called(again, given["access_token"]).status_code == 200
        assert client.refreshed(given["refresh_token"]).status_code == 200
        assert client.exchanged(code).status_code == 200


def test_a_damaged_file_of_grants_shuts_their_door_alone(server, client, person, tokens):
    (server.data / "oauth.json").write_text('{"version": 1, "grants": [{}], "clients": []}')
    assert called(server, tokens["access_token"]).status_code == 500
    assert called(server, person.secret).status_code == 200


def test_metadata_is_there_only_where_oauth_is_on(own_server):
    paths = [f"/.well-known/oauth-protected-resource{path}" for path in ("", "/mcp", "/p/nilou/mcp")]
    paths += ["/.well-known/oauth-authorization-server"]
    with httpx2.Client(base_url=own_server.url, verify=TLS) as http:
        assert [http.get(path).status_code for path in paths] == [404] * 4
        assert http.post("/oauth/token", data={"grant_type": "refresh_token"}).status_code == 404
        own_server.configure(oauth={"authorization_server": "built_in", "public_url": own_server.url})
        assert [http.get(path).status_code for path in paths] == [200] * 4
        assert http.get("/.well-known/oauth-protected-resource/api/stats").status_code == 404
        described = http.get("/.well-known/oauth-protected-resource/p/%E3%81%95/mcp").json()
        assert described["resource"] == f"{own_server.url}/p/%E3%81%95/mcp"
        server = http.get("/.well-known/oauth-authorization-server").json()
        assert server["issuer"] == own_server.url
        assert server["code_challenge_methods_supported"] == ["S256"]
        assert server["authorization_response_iss_parameter_supported"] is True


def test_a_refused_call_says_where_to_ask(server):
    with httpx2.Client(base_url=server.url, verify=TLS) as http:
        for path in ("/mcp", "/p/nilou/mcp"):
            answer = http.post(path, json=ASKED, headers=MCP)
            assert answer.status_code == 401
            named = re.search(r'resource_metadata="([^"]+)"', answer.headers["www-authenticate"])[1]
            assert http.get(named).json()["resource"] == server.url + path
            assert 'scope="read write"' in answer.headers["www-authenticate"]
            assert "error=" not in answer.headers["www-authenticate"]
        wrong = http.post("/mcp", json=ASKED, headers={**MCP, "Authorization": "Bearer nonsense"})
        assert 'error="invalid_token"' in wrong.headers["www-authenticate"]


def test_oauth_shuts_the_door_and_it_stays_shut_when_it_is_turned_off_again(own_server):
    with httpx2.Client(base_url=own_server.url, verify=TLS) as http:
        assert http.get("/api/stats").status_code == 200
        own_server.configure(oauth={"authorization_server": "built_in", "public_url": own_server.url})
        assert http.get("/api/stats").status_code == 401
        own_server.configure()
        assert http.get("/api/stats").status_code == 401


def test_a_missing_scope_is_a_403_that_names_it(server, tokens):
    forget = {**ASKED, "params": {"name": "forget", "arguments": {"keys": ["memory_1"]}}}
    answer = called(server, tokens["access_token"], call=forget)
    assert answer.status_code == 403
    assert 'error="insufficient_scope", scope="read write delete"' in answer.headers["www-authenticate"]
    route = httpx2.get(f"{server.url}/api/export", headers={"Authorization": f"Bearer {tokens['access_token']}"}, verify=TLS)
    assert route.status_code == 403
    assert 'scope="read write export"' in route.headers["www-authenticate"]


def test_tokens_of_the_command_line_work_beside_it_as_ever(server, token):
    secret = token("nilou", scopes=["read"])
    assert called(server, secret, None).status_code == 200
    forget = {**ASKED, "params": {"name": "forget", "arguments": {"keys": ["memory_1"]}}}
    answer = called(server, secret, None, call=forget)
    assert answer.status_code == 200
    assert answer.json()["result"]["isError"]
