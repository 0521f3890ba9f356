"""Tokens of an external issuer: which are good, what their claims allow, and which are refused."""

import base64
import hmac
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote

import httpx2
import pytest
from joserfc import jwk, jwt
from oauth_person import TLS

pytestmark = pytest.mark.slow

ISSUER = "https://login.example.org"


class Issuer:
    """An issuer's keys and its introspection endpoint, on a loopback port. What it signs is the test's business."""

    def __init__(self):
        self.keys = {"one": jwk.generate_key("RSA", 2048)}
        self.told, self.asked, self.fetched, self.instead = {}, [], 0, None
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.fetched += 1
                keys = [{**key.as_dict(private=False), "kid": name} for name, key in issuer.keys.items()]
                self.answer({"keys": keys} if issuer.instead is None else issuer.instead)

            def do_POST(self):
                form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                issuer.asked.append((form["token"][0], self.headers["authorization"]))
                self.answer(issuer.told.get(form["token"][0], {"active": False}))

            def answer(self, tree):
                body = json.dumps(tree).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def signed(self, claims, key=None, header=(), algorithm="RS256"):
        return jwt.encode({"alg": algorithm, "kid": "one", **dict(header)}, claims, key or self.keys["one"], algorithms=[algorithm])


@pytest.fixture(scope="module")
def issuer():
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture(scope="module")
def server(serving, issuer, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("external")) as server:
        server.configure(oauth=settings(server, issuer))
        yield server


def settings(server, issuer, **changed):
    external = {"authorization_server": "external", "public_url": server.url, "issuer": ISSUER, "jwks_url": f"{issuer.url}/jwks"}
    return {name: value for name, value in {**external, **changed}.items() if value is not None}


@pytest.fixture
def claims(server):
    """The claims of a good token, some of them changed; one that is None is left out."""

    def claims(**changed):
        now = int(time.time())
        good = {
            "iss": ISSUER,
            "aud": f"{server.url}/mcp",
            "sub": "alice",
            "exp": now + 600,
            "iat": now,
            "scope": "read write",
            "personas": ["nilou"],
        }
        return {name: value for name, value in {**good, **changed}.items() if value is not None}

    return claims


def stats(server, token, persona="nilou"):
    headers = {"Authorization": f"Bearer {token}", **({"X-Persona": quote(persona)} if persona else {})}
    return httpx2.get(f"{server.url}/api/stats", headers=headers, verify=TLS)


def personas_of(server, token):
    answer = httpx2.get(f"{server.url}/api/personas", headers={"Authorization": f"Bearer {token}"}, verify=TLS)
    assert answer.status_code == 200, answer.text
    return {persona["name"] for persona in answer.json()["personas"]}


def stored(server, token, persona):
    headers = {"Authorization": f"Bearer {token}", "X-Persona": quote(persona)}
    return httpx2.post(f"{server.url}/api/import", content=b'{"content": "x"}', headers=headers, verify=TLS).status_code


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("time_", [float("inf"), float("-inf"), float("nan"), 10**400, -(10**400), 1e308, True, "soon", [], {}])
def test_a_time_that_is_none_is_never_an_error_of_the_server(server, issuer, claims, claim, time_):
    status = stats(server, issuer.signed(claims(**{claim: time_}))).status_code
    assert status == 401 or (claim == "iat" and status == 200)


def test_a_header_nested_without_end_is_a_bad_token(server, issuer, claims):
    _, *rest = issuer.signed(claims()).split(".")
    header = base64.urlsafe_b64encode(b'{"alg":"RS256","kid":' + b"[" * 4000).decode().rstrip("=")
    assert stats(server, ".".join([header, *rest])).status_code == 401


@pytest.mark.parametrize("kind", ["jwks_url", "introspection_url"])
def test_an_issuer_that_is_down_lets_nobody_in_and_the_client_is_to_try_again_and_not_to_sign_in(serving, issuer, claims, tmp_path, kind):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        gone = f"http://127.0.0.1:{unused.getsockname()[1]}"
    secret = tmp_path / "secret"
    secret.write_text("s")
    asked = {"introspection_url": gone, "jwks_url": None, "client_id": "memory", "client_secret_file": str(secret)}
    with serving(tmp_path) as server:
        server.configure(oauth=settings(server, issuer, **({"jwks_url": gone} if kind == "jwks_url" else asked)))
        token = issuer.signed(claims(aud=f"{server.url}/mcp"))
        for _ in range(2):
            answer = stats(server, token)
            assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
        assert stats(server, "no token").status_code == (401 if kind == "jwks_url" else 503)


@pytest.mark.parametrize("instead", [{}, {"keys": None}, [], {"error": "maintenance"}])
def test_an_issuer_that_answers_with_something_else_than_its_keys_is_to_be_asked_again(
    serving, issuer, claims, tmp_path, monkeypatch, instead
):
    monkeypatch.setattr(issuer, "instead", instead)
    with serving(tmp_path) as server:
        server.configure(oauth=settings(server, issuer))
        answer = stats(server, issuer.signed(claims(aud=f"{server.url}/mcp")))
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True)


def test_a_good_token_is_let_in_as_its_personas_with_its_scopes(server, issuer, claims):
    token = issuer.signed(claims())
    assert stats(server, token).status_code == 200
    assert stored(server, token, "nilou") == 200
    assert stored(server, token, "dehya") == 403
    reader = issuer.signed(claims(scope="read openid"))
    assert stored(server, reader, "nilou") == 403


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": "https://other.example/mcp"}, {"aud": None}, {"aud": []}, {"aud": "client-id-of-an-id-token"}, {"aud": {"x": 1}},
        {"iss": "https://attacker.example"}, {"iss": None}, {"iss": f"{ISSUER}/"},
        {"exp": 1_000_000_000}, {"exp": None}, {"exp": "never"}, {"nbf": 9_999_999_999}, {"nbf": "soon"},
    ],
)  # fmt: skip
def test_a_token_for_another_server_of_another_issuer_or_another_time_is_refused(server, issuer, claims, changed):
    answer = stats(server, issuer.signed(claims(**changed)))
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_the_audience_of_a_lookalike_is_another_server(server, issuer, claims):
    for audience in (f"{server.url}.attacker.example/mcp", f"{server.url}/mcp/", f"{server.url}/other", f"{server.url}/p/nilou/mcp/x"):
        assert stats(server, issuer.signed(claims(aud=audience))).status_code == 401


def test_clocks_may_differ_by_a_minute(server, issuer, claims):
    assert stats(server, issuer.signed(claims(nbf=int(time.time()) + 30))).status_code == 200
    assert stats(server, issuer.signed(claims(nbf=int(time.time()) + 120))).status_code == 401


def test_one_algorithm_is_accepted_and_only_with_a_key_of_the_issuer(server, issuer, claims):
    public = issuer.keys["one"].as_pem(private=False)
    forged = [
        issuer.signed(claims(), key=jwk.generate_key("RSA", 2048)),
        issuer.signed(claims(), algorithm="RS512"),
        issuer.signed(claims(), algorithm="PS256"),
        keyed_with(public, issuer.signed(claims())),
        unsigned(issuer.signed(claims())),
        issuer.signed(claims(), header={"kid": "unknown"}),
        issuer.signed(claims())[:-4] + "AAAA",
        f"{issuer.signed(claims(personas=['x'])).rsplit('.', 1)[0]}.{issuer.signed(claims()).rsplit('.', 1)[1]}",
    ]
    assert [stats(server, token).status_code for token in forged] == [401] * len(forged)


def encoded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def unsigned(token):
    head = encoded(b'{"alg":"none","kid":"one"}')
    return f"{head}.{token.split('.')[1]}."


def keyed_with(public, token):
    """The token, signed with the public key as if it were a secret that both sides know."""
    head = encoded(b'{"alg":"HS256","kid":"one"}')
    signed = f"{head}.{token.split('.')[1]}"
    return f"{signed}.{encoded(hmac.digest(public, signed.encode(), 'sha256'))}"


def test_a_persona_that_the_claims_do_not_allow_is_answered_as_an_absent_one(server, issuer, claims):
    owner = issuer.signed(claims(personas=["secret"]))
    assert stored(server, owner, "secret") == 200
    other = issuer.signed(claims(personas=["nilou"]))
    answers = [stats(server, other, name) for name in ("secret", "absent")]
    assert answers[0].text.replace("secret", "…") == answers[1].text.replace("absent", "…")
    assert personas_of(server, other) <= {"nilou"}
    assert stored(server, other, "secret") == stored(server, other, "absent") == 403


def test_a_token_for_one_personas_address_is_good_for_that_persona_alone(server, issuer, claims):
    token = issuer.signed(claims(aud=f"{server.url}/p/{quote('さくら')}/mcp", personas=["さくら", "nilou"]))
    assert stored(server, token, "さくら") == 200
    assert stored(server, token, "nilou") == 403
    assert stats(server, issuer.signed(claims(aud=f"{server.url}/p/dehya/mcp", personas=["nilou"]))).status_code == 403


def test_without_personas_in_the_claims_nobody_is_let_in(server, issuer, claims):
    for personas in (None, [], "", {"nilou": True}, [1], [""], ["x" * 500]):
        answer = stats(server, issuer.signed(claims(personas=personas)), None)
        assert answer.status_code == 403, personas
    assert stats(server, issuer.signed(claims(personas="all"))).json().get("memories", 0) == 0


def test_admin_is_never_a_clients(server, issuer, claims):
    token = issuer.signed(claims(scope="read write delete export admin"))
    for path in ("/api/tokens", "/api/config"):
        assert httpx2.get(server.url + path, headers={"Authorization": f"Bearer {token}"}, verify=TLS).status_code in (403, 404)
    made = httpx2.post(f"{server.url}/api/tokens", json={"all_personas": True, "scopes": ["read"], "turn_on": True},
                       headers={"Authorization": f"Bearer {token}"}, verify=TLS)  # fmt: skip
    assert made.status_code == 403


def test_a_new_key_of_the_issuer_is_fetched_and_a_known_one_is_not(serving, issuer, claims, server, tmp_path):
    with serving(tmp_path) as fresh:
        fresh.configure(oauth=settings(fresh, issuer))
        aud = f"{fresh.url}/mcp"
        before = issuer.fetched
        for _ in range(5):
            assert stats(fresh, issuer.signed(claims(aud=aud))).status_code == 200
        assert issuer.fetched == before + 1
    with serving(tmp_path) as again:
        again.configure(oauth=settings(again, issuer))
        issuer.keys["two"] = jwk.generate_key("RSA", 2048)
        token = issuer.signed(claims(aud=f"{again.url}/mcp"), key=issuer.keys["two"], header={"kid": "two"})
        assert stats(again, token).status_code == 200


def test_the_values_of_a_claim_may_stand_for_personas(serving, issuer, claims, tmp_path):
    with serving(tmp_path) as server:
        personas = {"family": ["nilou", "さくら"], "admins": "all"}
        server.configure(oauth=settings(server, issuer, personas=personas, personas_claim="realm.groups", scopes_claim="https://x/scopes"))

        def token(*groups):
            return issuer.signed(claims(aud=f"{server.url}/mcp", realm={"groups": list(groups)}, **{"https://x/scopes": ["read", "write"]}))

        assert stored(server, token("family"), "さくら") == 200
        assert stored(server, token("family"), "dehya") == 403
        assert stored(server, token("admins"), "dehya") == 200
        assert stats(server, token("nilou"), None).status_code == 403
        assert stats(server, token("all"), None).status_code == 403


def test_opaque_tokens_are_asked_about_and_an_answer_is_believed_for_a_while(serving, issuer, claims, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    with serving(tmp_path) as server:
        asking = {"jwks_url": None, "introspection_url": f"{issuer.url}/ask", "client_id": "memory", "client_secret_file": str(secret)}
        server.configure(oauth=settings(server, issuer, **asking))
        good = {"active": True, **claims(aud=f"{server.url}/mcp")}
        issuer.told = {
            "good": good,
            "inactive": {**good, "active": False},
            "other": {**good, "aud": "https://other.example/mcp"},
            "no-audience": {name: value for name, value in good.items() if name != "aud"},
            "mixed-up": {**good, "iss": "https://attacker.example"},
            "over": {**good, "exp": 1_000_000_000},
        }
        assert [stats(server, "good").status_code for _ in range(3)] == [200] * 3
        assert [asked for asked in issuer.asked if asked[0] == "good"] == [("good", "Basic bWVtb3J5Omh1c2g=")]
        for token in ("inactive", "other", "no-audience", "mixed-up", "over", "unknown"):
            assert stats(server, token).status_code == 401, token


def test_metadata_names_the_issuer_and_there_are_no_endpoints(server):
    described = httpx2.get(f"{server.url}/.well-known/oauth-protected-resource/mcp", verify=TLS).json()
    assert described["authorization_servers"] == [ISSUER]
    assert httpx2.get(f"{server.url}/.well-known/oauth-authorization-server", verify=TLS).status_code == 404
    assert httpx2.post(f"{server.url}/oauth/token", data={"grant_type": "refresh_token"}, verify=TLS).status_code in (401, 404)
